// The norm of a tensor, which one workgroup sums: VARIANT is the order, 0 that of the largest.
var<private> sum: f32;
var<workgroup> sums: array<f32, WORKGROUP>;

fn join(a: f32, b: f32) -> f32 {
  if (VARIANT == 0u) { return max_f32(a, b); }
  return a + b;
}

fn run(step: u32) {
  let left = size - step * 4u;
  let values = abs(load_input(step));
  for (var i = 0u; i < 4u; i++) {
    let value = select(0.0, values[i], i < left);
    sum = join(sum, select(value, value * value, VARIANT == 2u));
  }
}

fn leave(lane: u32) {
  sums[lane] = sum;
  workgroupBarrier();
  if (lane != 0u) { return; }
  var total = sums[0];
  for (var i = 1u; i < WORKGROUP; i++) { total = join(total, sums[i]); }
  store_result(0u, select(total, sqrt(total), VARIANT == 2u));
}
