// Lines of whole aligned quads, padded by 1; zero outside of x.
fn load_quad(at: u32, column: u32, inside: bool) -> vec4<T> {
  let kept = inside && column < x_width();
  return select(vec4<T>(), load_x(select(0u, (at + column) / 4u, kept)), kept);
}
fn load_before(at: u32, column: u32, inside: bool) -> T { return load_quad(at, column - 4u, inside).w; }
fn load_after(at: u32, column: u32, inside: bool) -> T { return load_quad(at, column, inside).x; }
