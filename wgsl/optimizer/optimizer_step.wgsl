// needs: f32
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

struct Element {
  param: f32,
  gradient: f32,
  first: f32,
  second: f32,
  most: f32,
}

fn number(bits: u32) -> f32 { return bitcast<f32>(bits); }

// Of the first and the second moment. 1 - beta^step keeps its digits as -expm1(step * log(beta)).
fn corrections_of(count: f32) -> vec2<f32> {
  if (SGD || ADAGRAD) { return vec2<f32>(count); }
  return vec2<f32>(-expm1_f32(count * number(log_beta1_bits())), -expm1_f32(count * number(log_beta2_bits())));
}

fn moved_by(from_value: f32, to_value: f32, weight: f32) -> f32 {
  if (weight < 0.5) { return from_value + weight * (to_value - from_value); }
  return to_value - (to_value - from_value) * (1.0 - weight);
}

// `corrections` of Adagrad are the number of the step.
fn updated(before: Element, rate: f32, corrections: vec2<f32>) -> Element {
  var after = before;
  var p = before.param;
  var g = before.gradient;
  if (MAXIMIZE) { g = -g; }
  if (ADAMW) {
    p = p - rate * number(decay_bits()) * p;
  } else if (decay_bits() != 0u) {
    g = g + number(decay_bits()) * p;
  }
  if (SGD) {
    if (MOMENTUM) {
      after.first = g;
      if (!FIRST) { after.first = number(beta1_bits()) * before.first + number(dampening_bits()) * g; }
      g = select(after.first, g + number(beta1_bits()) * after.first, NESTEROV);
    }
    after.param = p - rate * g;
    return after;
  }
  if (ADAGRAD) {
    after.first = fma(g, g, before.first);
    let decayed = rate / (1.0 + (corrections.x - 1.0) * number(beta1_bits()));
    after.param = p - decayed * g / (sqrt(after.first) + number(eps_bits()));
    return after;
  }
  after.first = moved_by(before.first, g, number(dampening_bits()));
  after.second = number(beta2_bits()) * before.second + number(rest2_bits()) * g * g;
  var second = after.second;
  if (AMSGRAD) {
    second = max_f32(second, before.most);
    after.most = second;
  }
  let denominator = sqrt(second) / sqrt(corrections.y) + number(eps_bits());
  after.param = p - rate / corrections.x * after.first / denominator;
  return after;
}
