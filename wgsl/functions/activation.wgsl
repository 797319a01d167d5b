// Activations of f32 and their derivatives.

fn gelu(x: f32) -> f32 { return 0.5 * x * (1.0 + erf_f32(x * 0.70710678)); }
fn gelu_backward(grad: f32, x: f32) -> f32 {
  let cdf = 0.5 * (1.0 + erf_f32(x * 0.70710678));
  return grad * fma(x * 0.39894228, exp_f32(-0.5 * x * x), cdf);
}
// x * 0.5 * (1 + tanh(u)) is x / (1 + 2^v) with v = -2 u / ln 2. Adding 1.5 * 2^23 rounds to an integer, which stands in
// the low bits; at 128 the power is infinite and the result 0 (or the CPU's NaN). The polynomial's terms are taken in
// pairs: drivers that do not fuse a product and a sum wait for each.
fn gelu_tanh(x: f32) -> f32 {
  let v = clamp(x * fma(x * x, -0.10294324, -2.30220819), -126.0, 128.0);
  let bits = bitcast<u32>(v + 12582912.0);
  let r = v - f32(bitcast<i32>(bits - 0x4b400000u));
  let z = r * r;
  let tail = fma(z, fma(r, 1.3264727e-3, 9.671513e-3), fma(r, 5.5507336e-2, 2.4022242e-1));
  let p = fma(r, 0.693147, 1.0) + z * tail;
  return x / (bitcast<f32>(bitcast<u32>(p) + (bits << 23u)) + 1.0);
}
fn gelu_tanh_backward(grad: f32, x: f32) -> f32 {
  let s = sigmoid_f32(1.59576912 * fma(0.044715 * x * x, x, x));
  return grad * (s + x * s * (1.0 - s) * 1.59576912 * fma(0.134145 * x, x, 1.0));
}

fn silu(x: f32) -> f32 { return x / (1.0 + exp_f32(-x)); }
fn silu_backward(grad: f32, x: f32) -> f32 {
  let s = sigmoid_f32(x);
  return grad * s * fma(x, 1.0 - s, 1.0);
}

// tanh(log(1 + e^x)), without the logarithm.
fn tanh_softplus(x: f32) -> f32 {
  let e = exp_f32(min(x, 20.0));
  let n = e * (e + 2.0);
  return n / (n + 2.0);
}
fn mish(x: f32) -> f32 {
  if (is_nan_f32(x)) { return x; }
  return x * tanh_softplus(x);
}
fn mish_backward(grad: f32, x: f32) -> f32 {
  let t = tanh_softplus(x);
  return grad * (t + x * sigmoid_f32(x) * (1.0 - t * t));
}

fn elu(x: f32, alpha: f32, scale: f32, input_scale: f32) -> f32 {
  if (x < 0.0) { return expm1_f32(x * input_scale) * alpha * scale; }
  return x * scale;
}
fn elu_backward(grad: f32, x: f32, alpha: f32, scale: f32, input_scale: f32) -> f32 {
  if (x <= 0.0) { return grad * input_scale * alpha * scale * exp_f32(x * input_scale); }
  return grad * scale;
}
fn elu_backward_of_result(grad: f32, y: f32, alpha: f32, scale: f32, input_scale: f32) -> f32 {
  if (y <= 0.0) { return grad * input_scale * (y + alpha * scale); }
  return grad * scale;
}

fn softplus(x: f32, beta: f32, threshold: f32) -> f32 {
  if (x * beta > threshold) { return x; }
  return log1p_f32(exp_f32(x * beta)) / beta;
}
fn softplus_backward(grad: f32, x: f32, beta: f32, threshold: f32) -> f32 {
  if (x * beta > threshold) { return grad; }
  return grad * sigmoid_f32(x * beta);
}
fn log_sigmoid(x: f32) -> f32 {
  if (is_nan_f32(x)) { return x; }
  return min(x, 0.0) - log1p_f32(exp_f32(-abs_f32(x)));
}

fn hardsigmoid(x: f32) -> f32 { return min_f32(max_f32(x + 3.0, 0.0), 6.0) / 6.0; }
fn hardswish_backward(grad: f32, x: f32) -> f32 {
  if (x <= -3.0) { return 0.0; }
  if (x < 3.0) { return grad * (x / 3.0 + 0.5); }
  return grad;
}
fn within(x: f32, low: f32, high: f32) -> bool { return ge_f32(x, low) && le_f32(x, high); }
fn softshrink(x: f32, lambda: f32) -> f32 {
  if (x > lambda) { return x - lambda; }
  if (x < -lambda) { return x + lambda; }
  return select(0.0, x, is_nan_f32(x));
}

fn logit(x: f32) -> f32 { return log_f32(x / (1.0 - x)); }
fn logit_backward(grad: f32, x: f32) -> f32 {
  if (!within(x, 0.0, 1.0)) { return nan_f32(); }
  if (x == 0.0 || x == 1.0) { return grad * inf_f32(); }
  return grad / (x * (1.0 - x));
}
fn logit_backward_within(grad: f32, x: f32, low: f32, high: f32) -> f32 {
  if (x < low || x > high) { return 0.0; }
  return grad / (x * (1.0 - x));
}
