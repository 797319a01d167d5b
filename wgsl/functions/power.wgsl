// a to the power p, for a >= 0 and p not 0. The exponent of a is kept apart from its mantissa, so that the error grows
// with p alone.
fn norm_power(a: f32, p: f32) -> f32 {
  if (is_nan_f32(a)) { return a; }
  var bits = bitcast<u32>(a);  // a comparison might take denormal numbers for zero
  if (bits == 0u || is_inf_f32(a)) { return select(0.0, inf_f32(), (bits == 0u) == (p < 0.0)); }
  var exponent = 0;
  if (bits < 0x800000u) {
    bits = bitcast<u32>(f32(bits));
    exponent = -149;
  }
  exponent += i32(bits >> 23u) - 127;
  var mantissa = bitcast<f32>((bits & 0x7fffffu) | 0x3f800000u);
  if (mantissa > 1.4142135) {
    mantissa *= 0.5;
    exponent += 1;
  }
  let small = p * log_f32(mantissa);
  let large = p * f32(exponent);
  let n = round(fma(small, 1.44269504, large));
  if (n > 129.0) { return inf_f32(); }
  if (n < -151.0) { return 0.0; }
  let half = i32(n) / 2;
  return exp_f32(fma(large - n, 0.693147181, small)) * exp2i_f32(half) * exp2i_f32(i32(n) - half);
}
