// loops: takes long to compile
// needs: special_common
// Bessel functions of the first and second kind, of orders 0 and 1.

fn bessel_p0(t: f32) -> f32 {
  return fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, 1.16064359e-9, -3.68501313e-9), 1.08084945e-8),
      -5.02066359e-8), 2.97662168e-7), -2.46015197e-6), 3.49173003e-5), -1.32749311e-3), 0.998634766);
}
fn bessel_q0(t: f32) -> f32 {
  return fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, -1.22147737e-9, 3.56571777e-9), -8.98069949e-9),
      3.70015873e-8), -1.88283985e-7), 1.24803547e-6), -1.26774243e-5), 2.62842778e-4), -0.0247229927);
}
fn bessel_p1(t: f32) -> f32 {
  return fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, -1.2726239e-9, 4.07336259e-9), -1.21317776e-8),
      5.71997802e-8), -3.46750049e-7), 2.97882668e-6), -4.57828006e-5), 2.2414632e-3), 1.00229065);
}
fn bessel_q1(t: f32) -> f32 {
  return fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, 1.33263317e-9, -3.91738803e-9), 1.00053459e-8),
      -4.17313276e-8), 2.16070498e-7), -1.47421654e-6), 1.57961812e-5), -3.72969907e-4), 0.0746094866);
}
fn bessel_j0_core(t: f32) -> f32 {
  return fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, 5.06746017e-9, -1.57552778e-7),
      3.92850072e-6), -7.68339674e-5), 1.13436351e-3), -0.0120352143), 0.0853918235), -0.360180766), 0.709416004),
      -0.216505414), -0.38474451);
}
fn bessel_j1_core(t: f32) -> f32 {
  return fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, 2.35982834e-10, -8.11054938e-9),
      2.26345052e-7), -5.0284757e-6), 8.60544565e-5), -1.08898898e-3), 9.62817132e-3), -0.0546507671),
      0.172886768), -0.227013121), 0.0346408662);
}
fn bessel_y0_core(t: f32) -> f32 {
  return fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, -9.73759253e-9, 2.9215248e-7),
      -6.98548774e-6), 1.2994556e-4), -1.80280967e-3), 0.0176353457), -0.111516822), 0.3885164), -0.470576366),
      -0.432655822), 0.483724858);
}
fn bessel_y1_core(t: f32) -> f32 {
  return fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, -4.60789498e-10, 1.5320407e-8),
      -4.11377149e-7), 8.73306679e-6), -1.41418358e-4), 1.66880315e-3), -0.0134334337), 0.0663469535),
      -0.163120204), 0.0910865084), 0.13974939);
}
// Beyond 5 both kinds are one wave: its cosine and sine, and the slowly varying p and q. As the CPU does, the phase is
// subtracted in f32.
fn bessel_wave(p: f32, q: f32, phase: f32, x: f32) -> vec2<f32> {
  let turn = sin_cos(x - phase);
  let u = 5.0 / x * q;
  return vec2<f32>(p * turn.y - u * turn.x, p * turn.x + u * turn.y) * 0.797884561 / sqrt(x);
}
fn bessel_wave_0(x: f32) -> vec2<f32> {
  let t = fma(50.0 / x, 1.0 / x, -1.0);
  return bessel_wave(bessel_p0(t), bessel_q0(t), 0.785398163, x);
}
fn bessel_wave_1(x: f32) -> vec2<f32> {
  let t = fma(50.0 / x, 1.0 / x, -1.0);
  return bessel_wave(bessel_p1(t), bessel_q1(t), 2.35619449, x);
}

fn bessel_j0(x: f32) -> f32 {
  let a = abs_f32(x);
  if (is_nan_f32(x) || is_inf_f32(x)) { return nan_f32(); }
  if (a <= 5.0) { return bessel_j0_core(fma(a * a, 0.08, -1.0)); }
  return bessel_wave_0(a).x;
}
fn bessel_j1(x: f32) -> f32 {
  let a = abs_f32(x);
  if (is_nan_f32(x) || is_inf_f32(x)) { return nan_f32(); }
  if (a <= 5.0) { return x * bessel_j1_core(fma(a * a, 0.08, -1.0)); }
  let y = bessel_wave_1(a).x;
  return select(y, -y, x < 0.0);
}
fn bessel_y0(x: f32) -> f32 {
  if (x == 0.0) { return -inf_f32(); }
  if (is_nan_f32(x) || is_inf_f32(x) || x < 0.0) { return nan_f32(); }
  if (x <= 5.0) { return fma(0.636619772 * log_f32(x), bessel_j0(x), bessel_y0_core(fma(x * x, 0.08, -1.0))); }
  return bessel_wave_0(x).y;
}
fn bessel_y1(x: f32) -> f32 {
  if (x == 0.0) { return -inf_f32(); }
  if (is_nan_f32(x) || is_inf_f32(x) || x <= 0.0) { return nan_f32(); }
  if (x <= 5.0) {
    return x * bessel_y1_core(fma(x * x, 0.08, -1.0)) + 0.636619772 * (bessel_j1(x) * log_f32(x) - 1.0 / x);
  }
  return bessel_wave_1(x).y;
}

fn spherical_bessel_j0(x: f32) -> f32 {
  if (is_nan_f32(x)) { return x; }
  if (is_inf_f32(x)) { return 0.0; }
  let z = x * x;
  if (abs_f32(x) < 0.5) { return fma(z, fma(z, fma(z, -1.98412698e-4, 8.33333333e-3), -1.66666667e-1), 1.0); }
  return sin_cos(x).x / x;
}
