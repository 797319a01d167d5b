// Reductions over the lanes of a workgroup, whose number is a power of two. Every lane gets the result.
var<workgroup> partial: array<f32, WORKGROUP>;

fn workgroup_sum(lane: u32, value: f32) -> f32 {
  partial[lane] = value;
  for (var step = WORKGROUP / 2u; step > 0u; step /= 2u) {
    workgroupBarrier();
    if (lane < step) { partial[lane] += partial[lane + step]; }
  }
  workgroupBarrier();
  let result = partial[0];
  workgroupBarrier();
  return result;
}

fn workgroup_max(lane: u32, value: f32) -> f32 {
  partial[lane] = value;
  for (var step = WORKGROUP / 2u; step > 0u; step /= 2u) {
    workgroupBarrier();
    if (lane < step) { partial[lane] = max_f32(partial[lane], partial[lane + step]); }
  }
  workgroupBarrier();
  let result = partial[0];
  workgroupBarrier();
  return result;
}
