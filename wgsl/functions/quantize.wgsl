// Rounds to the nearest even step, with the offset, and cuts to the range. NaN becomes the greatest, as on the CPU.
fn quantized(a: f32, inverse_scale: f32, zero_point: f32, low: f32, high: f32) -> f32 {
  if (is_nan_f32(a)) { return high; }
  return clamp(round(fma(a, inverse_scale, zero_point)), low, high);
}
