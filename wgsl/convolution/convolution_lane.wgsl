// Each lane loads the rows itself.
fn add_rows(acc: ptr<function, array<vec4<f32>, ROWS>>, at: u32, lane: u32, b: vec4<f32>) {
  for (var i = 0u; i < ROWS / 4u; i++) { add_quad(acc, 4u * i, load_rows(at, i), b); }
}
