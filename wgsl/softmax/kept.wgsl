// Two quads of a lane, as far apart as a workgroup is wide.
struct Pair { a: vec4<f32>, b: vec4<f32>, }

var<private> lane_index: u32;
// From the parameters, though a kernel knows it: drivers would write out a loop over a constant.
fn block_count() -> u32 { return (steps() + 2u * WORKGROUP - 1u) / (2u * WORKGROUP); }
fn place(block: u32) -> u32 { return block * 2u * WORKGROUP + lane_index; }
// Elements beyond the end of a row count as `rest`.
fn cut(v: Pair, i: u32, rest: f32) -> Pair {
  if (WHOLE) { return v; }
  return Pair(select(vec4<f32>(rest), v.a, i < steps()), select(vec4<f32>(rest), v.b, i + WORKGROUP < steps()));
}
fn store_pair(start: u32, i: u32, v: Pair) {
  if (WHOLE || i < steps()) { store_out(start, i, v.a); }
  if (WHOLE || i + WORKGROUP < steps()) { store_out(start, i + WORKGROUP, v.b); }
}
