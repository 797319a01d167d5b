// Sums of each row's gradients, alone and times the distances from the mean, then the gradient of x:
// (grad * weight - sum / n - distance * scale^2 * moment / n) * scale.
fn block(row: u32, end: u32, first: u32, step: u32, leads: bool) {
  var means = vec4<f32>();
  var sums = array<vec4<f32>, ROWS>();
  var products = array<vec4<f32>, ROWS>();
  for (var r = 0u; r < ROWS; r++) { means[r] = load_mean(min(row + r, end - 1u) / share() % period()); }
  for (var i = first; i < steps(); i += step) {
    let weight = load_weight(0u, i);
    for (var r = 0u; r < ROWS; r++) {
      let start = row_start(min(row + r, end - 1u));
      let grad = load_grad(start, i) * weight;
      sums[r] += grad;
      products[r] = fma(grad, load_x(start, i) - means[r], products[r]);
    }
  }
  var folded = vec4<f32>();
  for (var r = 0u; r < ROWS; r++) { folded[r] = (sums[r].x + sums[r].y) + (sums[r].z + sums[r].w); }
  let all = total(folded);
  for (var r = 0u; r < ROWS; r++) { folded[r] = (products[r].x + products[r].y) + (products[r].z + products[r].w); }
  let moment = total(folded);
  if (SUMS) {
    if (leads) {
      for (var r = 0u; r < ROWS; r++) {
        let at = min(row + r, end - 1u);
        store_total(at, all[r]);
        store_moment(at, moment[r]);
      }
    }
  }
  if (!WRITES) { return; }
  var scale = vec4<f32>();
  for (var r = 0u; r < ROWS; r++) { scale[r] = load_scale(min(row + r, end - 1u)); }
  let size = f32(length());
  let level = select(vec4<f32>(), all / size, vec4<bool>(CENTERED));
  let slope = moment * scale * scale / size;
  for (var i = first; i < steps(); i += step) {
    let weight = load_weight(0u, i);
    for (var r = 0u; r < ROWS; r++) {
      let start = row_start(min(row + r, end - 1u));
      let grad = load_grad(start, i) * weight;
      store_out(start, i, (grad - level[r] - (load_x(start, i) - means[r]) * slope[r]) * scale[r]);
    }
  }
}
