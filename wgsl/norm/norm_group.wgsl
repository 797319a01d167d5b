// Lanes join through shared memory.
var<workgroup> lanes: array<f32, WORKGROUP>;

fn total(x: f32) -> f32 {
  lanes[lane_index] = x;
  workgroupBarrier();
  for (var half = WORKGROUP / 2u; half > 0u; half /= 2u) {
    if (lane_index < half) { lanes[lane_index] += lanes[lane_index + half]; }
    workgroupBarrier();
  }
  let all = lanes[0];
  workgroupBarrier();
  return all;
}
