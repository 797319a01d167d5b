// Lanes join through shared memory.
var<workgroup> lanes: array<vec4<f32>, WORKGROUP>;

fn total(v: vec4<f32>) -> vec4<f32> {
  lanes[lane_index] = v;
  workgroupBarrier();
  for (var half = WORKGROUP / 2u; half > 0u; half /= 2u) {
    if (lane_index < half) { lanes[lane_index] += lanes[lane_index + half]; }
    workgroupBarrier();
  }
  let all = lanes[0];
  workgroupBarrier();
  return all;
}
