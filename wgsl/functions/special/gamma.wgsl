// loops: takes long to compile
// needs: special_common
// The gamma function's family: lgamma, digamma, trigamma, the Hurwitz zeta function, incomplete gamma functions.

fn lgamma_near_1(t: f32) -> f32 {
  return fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, 2.02994119e-5,
      -4.33796098e-5), 2.21083877e-5), -4.93691566e-5), 2.09153725e-4), -4.63846029e-4), 9.75567472e-4),
      -2.24022603e-3), 5.29951097e-3), -0.0129633974), 0.0338225473), -0.100171295), 0.411233517), -0.577215666);
}
fn lgamma_near_2(t: f32) -> f32 {
  return fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, -5.08605346e-8, 2.2457516e-7),
      -8.64494064e-7), 3.95054107e-6), -1.86399763e-5), 9.03423118e-5), -4.61596364e-4), 2.57259856e-3),
      -0.0168380753), 0.161233517), 0.422784335);
}
fn igamma_c0(t: f32) -> f32 {
  return fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, -2.90042214e-8, 2.85351189e-6), -2.21404882e-5),
      7.13009976e-5), 2.97229558e-4), -6.33029757e-3), 0.0551351535), -0.337537179);
}
fn igamma_c1(t: f32) -> f32 {
  return fma(t, fma(t, fma(t, fma(t, fma(t, 1.23751615e-6, 3.41754646e-5), -2.83459145e-4), 1.18270932e-3),
      -2.43378372e-3), -1.67155341e-3);
}
fn lgamma_positive(x: f32) -> f32 {
  if (x < 0.5) { return x * lgamma_near_1(2.0 * x) - log_f32(x); }
  if (x < 1.5) { return (x - 1.0) * lgamma_near_1(2.0 * (x - 1.0)); }
  if (x < 8.0) {
    var y = x;
    var product = 1.0;
    while (y >= 2.5) {
      y -= 1.0;
      product *= y;
    }
    return log_f32(product) + (y - 2.0) * lgamma_near_2(2.0 * (y - 2.0));
  }
  let r = 1.0 / x;
  let z = r * r;
  let rest = fma(r, fma(z, fma(z, 7.93650794e-4, -2.77777778e-3), 8.33333333e-2), 0.418938533);
  return fma(x - 0.5, log_f32(x) - 1.0, rest);
}

fn special_lgamma(x: f32) -> f32 {
  if (is_nan_f32(x)) { return x; }
  if (is_inf_f32(x)) { return inf_f32(); }
  if (x > 0.0) { return lgamma_positive(x); }
  if (x == floor(x)) { return inf_f32(); }
  if (x > -0.5) { return x * lgamma_near_1(2.0 * x) - log_f32(-x); }
  return log_f32(3.14159265 / abs_f32(sinpi(x))) - lgamma_positive(1.0 - x);
}

fn digamma_positive(x: f32) -> f32 {
  var y = x;
  var sum = 0.0;
  while (y < 10.0) {
    sum += 1.0 / y;
    y += 1.0;
  }
  let r = 1.0 / y;
  let z = r * r;
  let series = z * fma(z, fma(z, fma(z, -4.16666667e-3, 3.96825397e-3), -8.33333333e-3), 8.33333333e-2);
  return log_f32(y) - 0.5 * r - series - sum;
}

fn special_digamma(x: f32) -> f32 {
  if (is_nan_f32(x)) { return x; }
  if (x == 0.0) { return select(-inf_f32(), inf_f32(), (bitcast<u32>(x) & 0x80000000u) != 0u); }
  if (x > 0.0) { return digamma_positive(x); }
  if (x == trunc(x)) { return nan_f32(); }
  let part = x - trunc(x);
  return digamma_positive(1.0 - x) - 3.14159265 * cospi(part) / sinpi(part);
}

fn special_trigamma(x: f32) -> f32 {
  if (is_nan_f32(x)) { return x; }
  if (is_inf_f32(x)) { return select(nan_f32(), 0.0, x > 0.0); }
  let reflected = x < 0.5;
  var y = select(x, 1.0 - x, reflected);
  var sum = 0.0;
  for (var i = 0u; i < 6u; i++) {
    sum += 1.0 / (y * y);
    y += 1.0;
  }
  let z = 1.0 / (y * y);
  sum += (1.0 + 0.5 / y + z * (1.66666667e-1 - z * (3.33333333e-2 - z * 2.38095238e-2))) / y;
  if (!reflected) { return sum; }
  // Rounded as on the CPU, which has no pole at a negative integer for that.
  let s = sin_cos(separate(3.14159265 * x)).x;
  if (s == 0.0) { return inf_f32(); }
  return 9.8696044 / (s * s) - sum;
}

// a^-x: the whole part of x by squaring, which errs less than a logarithm, the rest by one.
// For a negative a, x is whole.
fn inverse_power(a: f32, x: f32) -> f32 {
  let size = abs_f32(a);
  let whole = floor(min(x, 200.0));
  var n = u32(whole);
  var square = size;
  var power = 1.0;
  let odd = (n & 1u) == 1u && whole == x;
  while (n > 0u) {
    if ((n & 1u) == 1u) { power *= square; }
    square *= square;
    n >>= 1u;
  }
  let y = exp_f32((whole - x) * log_f32(size)) / power;
  return select(y, -y, odd && a < 0.0);
}

// The sum of (q + k)^-x for q above -9, by Euler and Maclaurin from where q + k is above 9.
fn zeta_sum(x: f32, q: f32) -> f32 {
  var sum = inverse_power(q, x);
  var a = q;
  var term = 0.0;
  for (var i = 0u; i < 9u || (a <= 9.0 && i < 32u); i++) {
    a += 1.0;
    term = inverse_power(a, x);
    sum += term;
    if (abs_f32(term) < 6e-8 * sum) { return sum; }
  }
  sum += term * a / (x - 1.0) - 0.5 * term;
  // B(2k) / (2k)! times x (x + 1) ... (x + 2k - 2) a^(-x - 2k + 1)
  let z = 1.0 / (a * a);
  var factor = term * x / a;
  sum += factor * 8.33333333e-2;
  factor *= (x + 1.0) * (x + 2.0) * z;
  sum -= factor * 1.38888889e-3;
  factor *= (x + 3.0) * (x + 4.0) * z;
  sum += factor * 3.30687831e-5;
  factor *= (x + 5.0) * (x + 6.0) * z;
  sum -= factor * 8.26719577e-7;
  factor *= (x + 7.0) * (x + 8.0) * z;
  sum += factor * 2.08767570e-8;
  factor *= (x + 9.0) * (x + 10.0) * z;
  return sum - factor * 5.28419014e-10;
}

fn special_zeta(x: f32, q: f32) -> f32 {
  if (x == 1.0) { return inf_f32(); }
  if (lt_f32(x, 1.0)) { return nan_f32(); }
  if (le_f32(q, 0.0) && q == floor(q)) { return inf_f32(); }
  if (is_nan_f32(x) || is_nan_f32(q) || (q <= 0.0 && x != floor(x))) { return nan_f32(); }
  if (q >= -9.0) { return zeta_sum(x, q); }
  // Far below zero the steps up to it are a sum of the same kind, turned round: from 1 - part, and ending before 1 - q.
  // Both are exact, since q has few digits behind the point.
  let part = q - floor(q);
  let above = zeta_sum(x, part);
  let below = zeta_sum(x, 1.0 - part);
  let odd = x != 2.0 * floor(0.5 * x);
  if (is_inf_f32(above) && is_inf_f32(below)) {
    // Where both poles give infinities of opposite sign, the nearer to zero wins, until both leave float64's range too.
    if (odd && x * log_f32(max(part, 1.0 - part)) < -709.0) { return nan_f32(); }
    return select(above, -above, odd && part > 0.5);
  }
  let steps = below - zeta_sum(x, 1.0 - q);
  return above + select(steps, -steps, odd);
}

// x^a e^-x / gamma(a + 1)
fn igamma_prefix(a: f32, x: f32) -> f32 {
  if (a < 8.0) { return exp_f32(a * log_f32(x) - x - special_lgamma(a + 1.0)); }
  let mu = (x - a) / a;
  var exponent = a * log_f32(x / a) - (x - a);
  if (abs_f32(mu) < 0.5) { exponent = -a * mu * mu * log1p_rest(2.0 * mu); }
  let r = 1.0 / a;
  return exp_f32(exponent - r * (8.33333333e-2 - 2.77777778e-3 * r * r)) / sqrt(6.28318531 * a);
}

// Both regularised functions of a, x > 0, lower and upper; the smaller is exact, the other its complement.
fn igamma_both(a: f32, x: f32) -> vec2<f32> {
  let mu = (x - a) / a;
  if (a >= 50.0 && abs_f32(mu) < 0.5) {
    // Temme's uniform expansion.
    let d = mu * mu * log1p_rest(2.0 * mu);
    let eta = sqrt(2.0 * d);
    let decay = exp_f32(-a * d);
    let t = fma(select(eta, -eta, mu < 0.0), 1.53846154, 0.0769230769);
    let rest = decay * (igamma_c0(t) + igamma_c1(t) / a) / sqrt(6.28318531 * a);
    let half = 0.5 * decay * erfcx_positive(sqrt(a * d));
    if (mu < 0.0) { return vec2<f32>(half - rest, 1.0 - (half - rest)); }
    return vec2<f32>(1.0 - (half + rest), half + rest);
  }
  let prefix = igamma_prefix(a, x);
  if (x <= 1.0 || x < a) {
    var term = 1.0;
    var sum = 1.0;
    var n = a;
    for (var i = 0u; i < 500u; i++) {
      n += 1.0;
      term *= x / n;
      sum += term;
      if (term < 3e-8 * sum) { break; }
    }
    return vec2<f32>(prefix * sum, 1.0 - prefix * sum);
  }
  // Lentz's evaluation of the continued fraction.
  var b = x + 1.0 - a;
  var c = 1e30;
  var d = 1.0 / b;
  var fraction = d;
  for (var i = 1u; i < 500u; i++) {
    let n = f32(i);
    let numerator = -n * (n - a);
    b += 2.0;
    d = fma(numerator, d, b);
    d = 1.0 / select(d, 1e-30, abs_f32(d) < 1e-30);
    c = b + numerator / c;
    c = select(c, 1e-30, abs_f32(c) < 1e-30);
    fraction *= c * d;
    if (abs_f32(c * d - 1.0) < 6e-8) { break; }
  }
  let upper = prefix * a * fraction;
  return vec2<f32>(1.0 - upper, upper);
}

// `end` is the value far to the right: 1 for the lower function, 0 for the upper.
fn igamma_edge(a: f32, x: f32, end: f32) -> f32 {
  if (lt_f32(x, 0.0) || lt_f32(a, 0.0)) { return nan_f32(); }
  if (a == 0.0) { return select(nan_f32(), end, gt_f32(x, 0.0)); }
  if (x == 0.0) { return 1.0 - end; }
  if (is_inf_f32(a)) { return select(1.0 - end, nan_f32(), is_inf_f32(x)); }
  if (is_nan_f32(a) && is_inf_f32(x)) { return end; }
  return select(end, nan_f32(), is_nan_f32(a) || is_nan_f32(x));
}
fn igamma_is_inner(a: f32, x: f32) -> bool {
  return a > 0.0 && x > 0.0 && !is_nan_f32(a) && !is_nan_f32(x) && !is_inf_f32(a) && !is_inf_f32(x);
}
fn special_igamma(a: f32, x: f32) -> f32 {
  if (igamma_is_inner(a, x)) { return igamma_both(a, x).x; }
  return igamma_edge(a, x, 1.0);
}
fn special_igammac(a: f32, x: f32) -> f32 {
  if (igamma_is_inner(a, x)) { return igamma_both(a, x).y; }
  return igamma_edge(a, x, 0.0);
}
