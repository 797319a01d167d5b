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

// As that of the forward.
fn block(row: u32, turns: u32, end: u32, first: u32, step: u32, leads: bool) {
  let size = f32(length());
  for (var turn = 0u; turn < turns; turn++) {
    let at = min(row + turn, end - 1u);
    let mean = load_mean(at / share() % period());
    let p = fold_row(at, mean, first, step);
    let all = total((p.grad.x + p.grad.y) + (p.grad.z + p.grad.w));
    let moment = total((p.product.x + p.product.y) + (p.product.z + p.product.w));
    if (SUMS) {
      if (leads) {
        store_total(at, all);
        store_moment(at, moment);
      }
    }
    if (WRITES && row < end) { write_row(at, mean, select(0.0, all / size, CENTERED), moment / size, first, step); }
  }
}

fn write_row(row: u32, mean: f32, level: f32, moment: f32, first: u32, step: u32) {
  let scale = load_scale(row);
  let slope = moment * scale * scale;
  let end = steps();
  let grads = start_of_grad(row);
  let start = start_of_x(row);
  let to = start_of_out(row);
  let weights = start_of_weight(0u);
  for (var i = first; i < end; i += step) {
    let grad = load_grad(grads, i) * load_weight(weights, i);
    store_out(to, i, (grad - level - (load_x(start, i) - mean) * slope) * scale);
  }
}
