// Lines of any alignment and stride; zero outside of x.
fn load_element(at: u32, column: u32, inside: bool) -> T {
  let kept = inside && column < x_width();
  return select(T(), load_x(select(0u, at + column * x_w(), kept)), kept);
}
fn load_before(at: u32, column: u32, inside: bool) -> T { return load_element(at, column - 1u, inside); }
fn load_after(at: u32, column: u32, inside: bool) -> T { return load_element(at, column, inside); }

fn load_quad(at: u32, column: u32, inside: bool) -> vec4<T> {
  let columns = vec4<u32>(column) + vec4<u32>(0u, 1u, 2u, 3u);
  let kept = (columns < vec4<u32>(x_width())) & vec4<bool>(inside);
  let places = select(vec4<u32>(), at + columns * x_w(), kept);
  return select(vec4<T>(), vec4<T>(load_x(places.x), load_x(places.y), load_x(places.z), load_x(places.w)), kept);
}
