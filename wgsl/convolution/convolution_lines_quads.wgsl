// Lines of whole aligned quads: a lane's own elements as such, and single ones before and behind them.
fn load_seen(at: u32, first: u32, is_line: bool) -> Seen {
  var x = Seen();
  for (var i = 0u; i < BEFORE; i++) { x[i] = select(0.0, load_x(at + i), is_line && first + i < x_size().z); }
  for (var i = BEFORE; i < BEFORE + OWN; i += 4u) {
    let quad = select(vec4<f32>(), load_quad(at + i), is_line && first + i < x_size().z);
    x[i] = quad.x;
    x[i + 1u] = quad.y;
    x[i + 2u] = quad.z;
    x[i + 3u] = quad.w;
  }
  for (var i = BEFORE + OWN; i < SEEN; i++) { x[i] = select(0.0, load_x(at + i), is_line && first + i < x_size().z); }
  return x;
}

fn store_span(at: u32, column: u32, left: vec4<f32>, right: vec4<f32>) {
  store_quad(at, left);
  if (column + 4u < out_size().z) { store_quad(at + 4u, right); }
}
