// Lanes add through shared memory.
var<workgroup> lanes: array<vec4<f32>, WORKGROUP>;

fn over_lanes(value: vec4<f32>, lane: u32) -> vec4<f32> {
  lanes[lane] = value;
  workgroupBarrier();
  for (var half = WORKGROUP / 2u; half > 0u; half /= 2u) {
    if (lane < half) { lanes[lane] += lanes[lane + half]; }
    workgroupBarrier();
  }
  let sum = lanes[0];
  workgroupBarrier();
  return sum;
}
