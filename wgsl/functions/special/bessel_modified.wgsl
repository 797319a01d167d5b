// loops: takes long to compile
// needs: special_common
// Modified Bessel functions of orders 0 and 1, and Airy's function.

fn i0e_small(t: f32) -> f32 {
  return fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t,
      fma(t, 1.89432223e-3, -4.36732569e-3), 1.57555718e-3), -1.71341825e-3), 0.0139645488), -0.0246937723),
      0.0290835299), -0.0402424033), 0.0571118621), -0.0703820352), 0.0792213013), -0.0848278182), 0.0873472953),
      -0.0890531991), 0.0945155475), -0.113004123), 0.207001921);
}
fn i0e_large(t: f32) -> f32 {
  return fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, 3.21343457e-9, 3.17346827e-8), 1.0222958e-7),
      3.07125179e-7), 1.48016687e-6), 1.1139924e-5), 1.36216348e-4), 3.36055223e-3), 0.402176509);
}
fn i1e_small(t: f32) -> f32 {
  return fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t,
      fma(t, 2.95533883e-4, -7.27186742e-4), 4.58867388e-4), -7.82789413e-4), 3.28453404e-3), -6.27549095e-3),
      9.43228148e-3), -0.0151672271), 0.0237323263), -0.0337949031), 0.0446671243), -0.0552601501), 0.0637679391),
      -0.0684840366), 0.0680575887), -0.0611243081), 0.0446877099);
}
fn i1e_large(t: f32) -> f32 {
  return fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, -4.23689781e-9, -3.59046383e-8), -1.14235342e-7),
      -3.58195365e-7), -1.83102124e-6), -1.50353904e-5), -2.19236053e-4), -9.74957744e-3), 0.389398459);
}
fn i0_near(t: f32) -> f32 {
  return fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, 3.23667183e-8, 2.35815184e-6), 1.19820684e-4), 3.92856482e-3),
      0.0735898684), 0.635861728), 1.56608293);
}
fn i1_near(t: f32) -> f32 {
  return fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, 2.29151906e-9, 1.94209199e-7), 1.17878948e-5), 4.79282725e-4),
      0.0117856953), 0.147179737), 0.635861728);
}
fn k0_near(t: f32) -> f32 {
  return fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, 6.623717e-10, 6.09445241e-8), 4.05450658e-6),
      1.82805551e-4), 5.05339264e-3), 0.0717770103), 0.340497321), -0.303620773);
}
fn k1_near(t: f32) -> f32 {
  return fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, -9.03337036e-9, -7.08284042e-7), -3.89186899e-5),
      -1.38316874e-3), -0.0278542352), -0.243838529), -0.332240955), 0.885088288);
}
fn k0_far(t: f32) -> f32 {
  return fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, 3.56744203e-8,
      -8.11795279e-8), 7.60983514e-8), -2.1131943e-7), 7.6007268e-7), -2.22819007e-6), 6.99700083e-6),
      -2.4723996e-5), 9.95612171e-5), -4.79770486e-4), 3.03289179e-3), -0.0310714618), 1.21859534);
}
fn k1_far(t: f32) -> f32 {
  return fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, -4.09815131e-8,
      9.40526693e-8), -9.15556638e-8), 2.57201555e-7), -9.26318796e-7), 2.77228416e-6), -8.95526206e-6),
      3.28310788e-5), -1.39590978e-4), 7.35725786e-4), -5.56672985e-3), 0.103349738), 1.36315189);
}
fn airy_middle(t: f32) -> f32 {
  return fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t,
      fma(t, -1.33596525e-5, 6.19592574e-5), -1.45923966e-5), -5.52789445e-4), 1.54001859e-3), -1.25520542e-5),
      -9.52444829e-3), 0.0217656111), 2.11873713e-6), -0.0924935629), 0.16916288), 3.50125621e-7), -0.419462113),
      0.547985776), -4.99872563e-10), -0.543520747), 0.355028054);
}
fn airy_right(t: f32) -> f32 {
  return fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, 1.44528867e-8,
      -3.29194855e-8), 3.09900386e-8), -8.61670729e-8), 3.09953886e-7), -9.10721293e-7), 2.86880221e-6),
      -1.01779839e-5), 4.12289219e-5), -2.00594164e-4), 1.29179512e-3), -0.0139322438), 0.984519706);
}
fn airy_left_p(t: f32) -> f32 {
  return fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, 8.57253548e-7, -1.36438242e-6),
      -9.4449204e-8), -2.01398294e-7), 3.52353026e-6), -8.02020359e-6), 2.02876054e-5), -6.95316584e-5),
      3.43068896e-4), -3.58282862e-3), 0.995970409);
}
fn airy_left_q(t: f32) -> f32 {
  return fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, 1.73486138e-6, -2.63754248e-6),
      -6.21652799e-7), 4.43412363e-7), 5.15987071e-6), -1.05022581e-5), 2.21762574e-5), -6.39822457e-5),
      2.41567166e-4), -1.49378214e-3), 0.0328817408);
}
fn special_i0e(x: f32) -> f32 {
  let a = abs_f32(x);
  if (is_nan_f32(x)) { return x; }
  if (a <= 8.0) { return i0e_small(fma(a, 0.25, -1.0)); }
  return i0e_large(16.0 / a - 1.0) / sqrt(a);
}
fn special_i1e(x: f32) -> f32 {
  let a = abs_f32(x);
  if (is_nan_f32(x)) { return x; }
  if (a <= 8.0) { return x * i1e_small(fma(a, 0.25, -1.0)); }
  let y = i1e_large(16.0 / a - 1.0) / sqrt(a);
  return select(y, -y, x < 0.0);
}
// The CPU has NaN for the infinities.
fn special_i0(x: f32) -> f32 {
  if (is_inf_f32(x)) { return nan_f32(); }
  return exp_f32(abs_f32(x)) * special_i0e(x);
}
fn special_i1(x: f32) -> f32 {
  if (is_inf_f32(x)) { return nan_f32(); }
  return exp_f32(abs_f32(x)) * special_i1e(x);
}

// k(x) for x up to 2, and exp(x) k(x) beyond.
fn bessel_k0_core(x: f32) -> f32 {
  if (x <= 2.0) {
    let t = fma(x * x, 0.5, -1.0);
    return k0_near(t) - log_f32(0.5 * x) * i0_near(t);
  }
  return k0_far(4.0 / x - 1.0) / sqrt(x);
}
fn bessel_k1_core(x: f32) -> f32 {
  if (x <= 2.0) {
    let t = fma(x * x, 0.5, -1.0);
    return k1_near(t) / x + log_f32(0.5 * x) * x * i1_near(t);
  }
  return k1_far(4.0 / x - 1.0) / sqrt(x);
}
fn bessel_k_is_edge(x: f32) -> bool { return is_nan_f32(x) || x <= 0.0; }
fn bessel_k_edge(x: f32) -> f32 { return select(nan_f32(), inf_f32(), x == 0.0); }
fn bessel_k0(x: f32) -> f32 {
  if (bessel_k_is_edge(x)) { return bessel_k_edge(x); }
  return bessel_k0_core(x) * select(1.0, exp_f32(-x), x > 2.0);
}
fn bessel_k1(x: f32) -> f32 {
  if (bessel_k_is_edge(x)) { return bessel_k_edge(x); }
  return bessel_k1_core(x) * select(1.0, exp_f32(-x), x > 2.0);
}
fn scaled_bessel_k0(x: f32) -> f32 {
  if (bessel_k_is_edge(x)) { return bessel_k_edge(x); }
  return bessel_k0_core(x) * select(exp_f32(x), 1.0, x > 2.0);
}
fn scaled_bessel_k1(x: f32) -> f32 {
  if (bessel_k_is_edge(x)) { return bessel_k_edge(x); }
  return bessel_k1_core(x) * select(exp_f32(x), 1.0, x > 2.0);
}

fn airy_ai(x: f32) -> f32 {
  if (is_nan_f32(x) || is_inf_f32(x)) { return nan_f32(); }
  if (abs_f32(x) < 2.1) { return airy_middle(x * 0.476190476); }
  if (x > 103.892) { return 0.0; }
  let root = sqrt(abs_f32(x));
  let zeta = 2.0 * abs_f32(x) * root / 3.0;
  if (is_inf_f32(zeta)) { return nan_f32(); }
  if (x > 0.0) { return exp_f32(-zeta) * airy_right(4.0 / zeta - 1.0) / (3.5449077 * sqrt(root)); }
  let t = fma(8.0 / zeta, 1.0 / zeta, -1.0);
  let turn = sin_cos(zeta + 0.785398163);
  return (airy_left_p(t) * turn.x - 2.0 / zeta * airy_left_q(t) * turn.y) / (1.77245385 * sqrt(root));
}
