// Each of eight lanes loads four rows, and all get them by exchange: a load costs what a hundred products do.
fn add_rows(acc: ptr<function, array<vec4<f32>, ROWS>>, at: u32, lane: u32, b: vec4<f32>) {
  let a = load_rows(at, min(lane, ROWS / 4u - 1u));
  add_quad(acc, 0u, subgroupBroadcast(a, 0u), b);
  add_quad(acc, 4u, subgroupBroadcast(a, 1u), b);
  if (ROWS > 8u) {
    add_quad(acc, 8u, subgroupBroadcast(a, 2u), b);
    add_quad(acc, 12u, subgroupBroadcast(a, 3u), b);
  }
  if (ROWS > 16u) {
    add_quad(acc, 16u, subgroupBroadcast(a, 4u), b);
    add_quad(acc, 20u, subgroupBroadcast(a, 5u), b);
    add_quad(acc, 24u, subgroupBroadcast(a, 6u), b);
    add_quad(acc, 28u, subgroupBroadcast(a, 7u), b);
  }
}
