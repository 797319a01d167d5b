// Mean and spread of each row (Welford), then (x - mean) * scale * weight + bias. Every lane folds four columns of each of
// its rows; since rows are of one length, counts are the same for all of them.
fn block(row: u32, end: u32, first: u32, step: u32, leads: bool) {
  var means = array<vec4<f32>, ROWS>();
  var squares = array<vec4<f32>, ROWS>();
  var count = vec4<f32>();
  for (var i = first; i < steps(); i += step) {
    let counts = inside(i);
    count += select(vec4<f32>(), vec4<f32>(1.0), counts);
    let part = select(vec4<f32>(), 1.0 / count, counts);
    for (var r = 0u; r < ROWS; r++) {
      let x = load_x(row_start(min(row + r, end - 1u)), i);
      let apart = select(vec4<f32>(), x - means[r], counts);
      if (CENTERED) { means[r] = fma(apart, part, means[r]); }
      squares[r] = fma(apart, x - means[r], squares[r]);
    }
  }
  var sums = vec4<f32>();
  for (var r = 0u; r < ROWS; r++) { sums[r] = dot(means[r], count); }
  let size = f32(length());
  let mean = total(sums) / size;
  for (var r = 0u; r < ROWS; r++) {
    let apart = means[r] - mean[r];
    let spread = fma(apart * apart, count, squares[r]);
    sums[r] = (spread.x + spread.y) + (spread.z + spread.w);
  }
  let moment = total(sums);
  let scale = 1.0 / sqrt(moment / size + epsilon());
  if (leads) {
    for (var r = 0u; r < ROWS; r++) {
      let at = min(row + r, end - 1u);
      store_mean(at, mean[r]);
      store_scale(at, scale[r]);
      store_moment(at, moment[r]);
    }
  }
  if (!WRITES) { return; }
  for (var i = first; i < steps(); i += step) {
    let weight = load_weight(0u, i);
    let bias = load_bias(0u, i);
    for (var r = 0u; r < ROWS; r++) {
      let start = row_start(min(row + r, end - 1u));
      store_out(start, i, fma((load_x(start, i) - mean[r]) * scale[r], weight, bias));
    }
  }
}
