// Sums of each row's gradients, alone and times the distances from the mean, then the gradient of x:
// (grad * weight - sum / n - distance * scale^2 * moment / n) * scale.
struct Sums { grad: vec4<f32>, product: vec4<f32>, }

fn fold_row(row: u32, mean: f32, first: u32, step: u32) -> Sums {
  let grads = start_of_grad(row);
  let start = start_of_x(row);
  let weights = start_of_weight(0u);
  let end = steps();
  var p = Sums(vec4<f32>(), vec4<f32>());
  for (var i = first; i < end; i += step) {
    let grad = load_grad(grads, i) * load_weight(weights, i);
    p.grad += grad;
    p.product = fma(grad, load_x(start, i) - mean, p.product);
  }
  return p;
}

fn block(row: u32, end: u32, first: u32, step: u32, leads: bool) {
  var means = vec4<f32>();
  var sums = vec4<f32>();
  var products = vec4<f32>();
  for (var r = 0u; r < ROWS; r++) {
    let at = min(row + r, end - 1u);
    means[r] = load_mean(at / share() % period());
    let p = fold_row(at, means[r], first, step);
    sums[r] = (p.grad.x + p.grad.y) + (p.grad.z + p.grad.w);
    products[r] = (p.product.x + p.product.y) + (p.product.z + p.product.w);
  }
  let all = total(sums);
  let moment = total(products);
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
  let last = steps();
  let weights = start_of_weight(0u);
  for (var r = 0u; r < ROWS; r++) {
    let at = min(row + r, end - 1u);
    let grads = start_of_grad(at);
    let start = start_of_x(at);
    let to = start_of_out(at);
    for (var i = first; i < last; i += step) {
      let grad = load_grad(grads, i) * load_weight(weights, i);
      store_out(to, i, (grad - level[r] - (load_x(start, i) - means[r]) * slope[r]) * scale[r]);
    }
  }
}
