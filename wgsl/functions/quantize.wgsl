// Rounds to the nearest even step, with the offset, and cuts to the range. NaN becomes the greatest, as on the CPU.
fn quantized(a: f32, inverse_scale: f32, zero_point: f32, low: f32, high: f32) -> f32 {
  if (is_nan_f32(a)) { return high; }
  return clamp(round(fma(a, inverse_scale, zero_point)), low, high);
}

// What a number comes back as from the step that it was quantized to, and whether that is in the range, where alone
// there is a gradient.
fn fake_quantized(a: f32, step: f32, zero_point: f32, low: f32, high: f32, scale: f32) -> f32 {
  if (is_nan_f32(a)) { return (low - zero_point) * scale; }
  return (clamp(step, low, high) - zero_point) * scale;
}
fn is_in_range(step: f32, low: f32, high: f32) -> bool { return ge_f32(step, low) && le_f32(step, high); }

// The gradients by scale and zero point of a learned quantization, where `a` got the gradient `grad`.
fn scale_gradient(a: f32, grad: f32, scale: f32, zero_point: f32, low: f32, high: f32) -> f32 {
  let step = round(a / scale + zero_point);
  if (step < low) { return grad * (low - zero_point); }
  if (step > high) { return grad * (high - zero_point); }
  return grad * ((step - zero_point) * scale - a) / scale;
}
fn zero_point_gradient(a: f32, grad: f32, scale: f32, zero_point: f32, low: f32, high: f32) -> f32 {
  let step = round(a / scale + zero_point);
  return select(0.0, -grad * scale, step < low || step > high);
}
fn learned_gradient(a: f32, grad: f32, scale: f32, zero_point: f32, low: f32, high: f32) -> f32 {
  let step = round(a / scale + zero_point);
  return select(grad, 0.0, step < low || step > high);
}
