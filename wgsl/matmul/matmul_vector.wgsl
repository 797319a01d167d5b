// A matrix times a vector, which is the one column of b: a workgroup takes LINES rows at a time, its lanes walk along
// them together, and share what they load of the vector.
fn sum_of(v: vec4<f32>) -> f32 { return (v.x + v.y) + (v.z + v.w); }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  take_params();
  let row_steps = (rows() + LINES - 1u) / LINES;
  let steps = (depth() + 3u) / 4u;
  let begin = group.x * chunk();
  let end = min(begin + chunk(), row_steps * batches());
  for (var task = begin; task < end; task++) {
    let row = (task % row_steps) * LINES;
    let batch = task / row_steps;
    let lines_of_a = lines_a(batch, row);
    let lines_of_b = lines_b(batch, 0u);
    var acc = mat4x4<f32>();
    for (var k = lane; k < steps; k += WORKGROUP) {
      let a = load_a(lines_of_a, k);
      let b = load_b(lines_of_b, k)[0];
      acc[0] = fma(a[0], b, acc[0]);
      if (LINES > 1u) {
        acc[1] = fma(a[1], b, acc[1]);
        acc[2] = fma(a[2], b, acc[2]);
        acc[3] = fma(a[3], b, acc[3]);
      }
    }
    let sums = over_lanes(vec4<f32>(sum_of(acc[0]), sum_of(acc[1]), sum_of(acc[2]), sum_of(acc[3])), lane);
    if (lane < min(LINES, rows() - row)) { store(batch, row + lane, 0u, sums[lane]); }
  }
}
