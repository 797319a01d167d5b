// Lines of any layout, element by element.
fn load_seen(at: u32, first: u32, is_line: bool) -> Seen {
  var x = Seen();
  for (var i = 0u; i < SEEN; i++) {
    x[i] = select(0.0, load_x(at + i * x_stride().z), is_line && first + i < x_size().z);
  }
  return x;
}

fn store_span(at: u32, column: u32, left: vec4<f32>, right: vec4<f32>) {
  let both = array<vec4<f32>, 2>(left, right);
  for (var i = 0u; i < min(SPAN, out_size().z - column); i++) {
    store(at + i * out_stride().z, both[i / 4u][i % 4u]);
  }
}
