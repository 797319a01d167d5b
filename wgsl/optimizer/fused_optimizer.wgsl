// One step of an optimizer for one element: moments, weight decay and the parameter in one pass.
const ADAM = (VARIANT & 3u) == 0u;
const ADAMW = (VARIANT & 3u) == 1u;
const SGD = (VARIANT & 3u) == 2u;
const ADAGRAD = (VARIANT & 3u) == 3u;
const AMSGRAD = (VARIANT & 4u) != 0u;
const MAXIMIZE = (VARIANT & 8u) != 0u;
const NESTEROV = (VARIANT & 16u) != 0u;
const FIRST = (VARIANT & 32u) != 0u;
const SCALED = (VARIANT & 64u) != 0u;
const RATE_IN_TENSOR = (VARIANT & 128u) != 0u;
const MOMENTUM = (VARIANT & 256u) != 0u;

fn number(bits: u32) -> f32 { return bitcast<f32>(bits); }
fn rate() -> f32 {
  if (RATE_IN_TENSOR) { return load_rate(0u); }
  return number(rate_bits());
}

// 1 - beta^step keeps its digits as -expm1(step * log(beta)).
fn correction(log_beta: f32) -> f32 { return -expm1_f32(load_step(0u) * log_beta); }

fn moved_by(from_value: f32, to_value: f32, weight: f32) -> f32 {
  if (weight < 0.5) { return from_value + weight * (to_value - from_value); }
  return to_value - (to_value - from_value) * (1.0 - weight);
}

fn run(task: u32) {
  // The scale of the gradients, then whether one of them was infinite: the step is left out.
  if (SCALED && load_scale(1u) == 1.0) { return; }
  var p = load_param(task);
  var g = load_gradient(task);
  if (SCALED) {
    g = g / load_scale(0u);
    store_gradient(task, g);
  }
  if (MAXIMIZE) { g = -g; }
  if (ADAMW) {
    p = p - rate() * number(decay_bits()) * p;
  } else if (decay_bits() != 0u) {
    g = g + number(decay_bits()) * p;
  }
  if (SGD) {
    if (MOMENTUM) {
      var buffer = g;
      if (!FIRST) { buffer = number(beta1_bits()) * load_first(task) + number(dampening_bits()) * g; }
      store_first(task, buffer);
      g = select(buffer, g + number(beta1_bits()) * buffer, NESTEROV);
    }
    store_param(task, p - rate() * g);
    return;
  }
  if (ADAGRAD) {
    let sum = fma(g, g, load_first(task));
    store_first(task, sum);
    let decayed = rate() / (1.0 + (load_step(0u) - 1.0) * number(beta1_bits()));
    store_param(task, p - decayed * g / (sqrt(sum) + number(eps_bits())));
    return;
  }
  let first = moved_by(load_first(task), g, number(dampening_bits()));
  var second = number(beta2_bits()) * load_second(task) + number(rest2_bits()) * g * g;
  store_first(task, first);
  store_second(task, second);
  if (AMSGRAD) {
    second = max_f32(second, load_most(task));
    store_most(task, second);
  }
  let denominator = sqrt(second) / sqrt(correction(number(log_beta2_bits()))) + number(eps_bits());
  store_param(task, p - rate() / correction(number(log_beta1_bits())) * first / denominator);
}
