// Rounds to the nearest even step and cuts to the range; what is no number becomes the smallest, as x86 does.
fn quantized(a: f32, inverse_scale: f32, zero_point: f32, low: f32, high: f32) -> f32 {
  let steps = a * inverse_scale;
  if (is_nan_f32(steps)) { return low; }
  return clamp(round(clamp(steps, -65536.0, 65536.0)) + zero_point, low, high);
}
