// loops: takes long to compile
// needs: special_common
// Functions of the normal distribution, and logarithms times their argument.

fn ndtri_core(t: f32) -> f32 {
  return fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, 2.17842406e-5, 6.30450886e-5),
      1.3070972e-4), 3.96707547e-4), 1.28702462e-3), 4.17178343e-3), 0.0143623604), 0.0550074361), 0.262699928),
      2.7254911);
}
fn ndtri_tail_a(t: f32) -> f32 {
  return fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, 7.37347839e-6,
      -1.93163218e-5), 2.89681389e-5), -7.8677703e-5), 2.41707725e-4), -6.72652605e-4), 1.89367309e-3),
      -5.4880362e-3), 0.0163445038), -0.0505660108), 1.65129738), 2.86732578);
}
fn ndtri_tail_b(t: f32) -> f32 {
  return fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, 2.0667671e-4, -4.63849229e-4),
      5.29806063e-4), -1.21627562e-3), 3.27236831e-3), -7.64286597e-3), 0.0180080962), -0.0440410488),
      4.86328612), 9.41898213);
}
fn special_erfcx(x: f32) -> f32 {
  if (is_nan_f32(x)) { return x; }
  if (x >= 0.0) { return erfcx_positive(x); }
  if (x < -9.4) { return inf_f32(); }
  return 2.0 * exp_f32(x * x) - erfcx_positive(-x);
}

fn special_ndtri(p: f32) -> f32 {
  if (p == 0.0) { return -inf_f32(); }
  if (p == 1.0) { return inf_f32(); }
  if (is_nan_f32(p) || p < 0.0 || p > 1.0) { return nan_f32(); }
  let z = p - 0.5;
  if (abs_f32(z) <= 0.374) { return z * ndtri_core(fma(z * z, 14.2857143, -1.0)); }
  let s = sqrt(-2.0 * log_f32(min(p, 1.0 - p)));
  var x = ndtri_tail_b(fma(s, 0.210526316, -2.05263158));
  if (s < 5.0) { x = ndtri_tail_a(fma(s, 0.673748994, -2.36874509)); }
  return select(x, -x, z < 0.0);
}

fn special_log_ndtr(x: f32) -> f32 {
  if (is_nan_f32(x)) { return x; }
  let t = x * 0.707106781;
  if (x < -1.0) { return log_f32(0.5 * erfcx_positive(-t)) - t * t; }
  return special_log1p(-0.5 * special_erfc(t));
}

fn special_entr(x: f32) -> f32 {
  if (is_nan_f32(x)) { return x; }
  if (x > 0.0) { return -x * log_f32(x); }
  return select(-inf_f32(), 0.0, x == 0.0);
}

fn special_xlog1py(x: f32, y: f32) -> f32 {
  if (is_nan_f32(y)) { return y; }
  if (x == 0.0) { return 0.0; }
  if (is_nan_f32(x)) { return x; }
  return x * special_log1p(y);
}
