// needs: angle
// Powers, logarithms, circular and hyperbolic functions of f32, within a few units of the last place.

// The same number, to a compiler that would otherwise reorder sums as if they were exact.
fn held(x: f32) -> f32 { return select(x, 0.0, is_nan_f32(x)); }
// The number's leading half: products of two such are exact.
fn leading(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) & 0xfffff000u); }

// 2^(n + r) for |r| up to about a half.
fn exp2_parts(n: f32, r: f32) -> f32 {
  return scale_f32(exp_near_zero_f32(r * 0.69314718), i32(n));
}
fn exp2_f32(x: f32) -> f32 {
  if (is_nan_f32(x)) { return x; }
  if (x >= 128.0) { return inf_f32(); }
  if (x < -150.0) { return 0.0; }
  let n = round(x);
  return exp2_parts(n, x - n);
}

// a * 2^b, by halves: 2^b alone may be out of range.
fn ldexp_by(a: f32, b: f32) -> f32 {
  if (is_nan_f32(b)) { return b; }
  let c = clamp(b, -600.0, 600.0);
  let half = trunc(c * 0.5);
  return a * exp2_f32(half) * exp2_f32(c - half);
}

fn log2_f32(x: f32) -> f32 {
  if (is_special_log_f32(x)) { return special_log_f32(x); }
  let parts = log_parts_f32(x);
  return fma(log_near_one_f32(parts.x), 1.44269504, parts.y);
}
fn log10_f32(x: f32) -> f32 {
  if (is_special_log_f32(x)) { return special_log_f32(x); }
  let parts = log_parts_f32(x);
  return fma(log_near_one_f32(parts.x), 0.43429448, parts.y * 0.30103);
}

// x^y for positive finite x. The logarithm is carried as a leading part and a rest, since y magnifies its error.
fn pow_positive(x: f32, y: f32) -> f32 {
  let parts = log_parts_f32(x);
  let f = parts.x;
  let e = parts.y;
  let d = leading(2.0 + f);
  let d_rest = held(f - held(d - 2.0));
  let s = leading(f / (2.0 + f));
  let s_rest = (held(f - held(s * d)) - s * d_rest) / (2.0 + f);
  let whole = s + s_rest;
  let z = whole * whole;
  let tail = 2.0 * whole * z * fma(z, fma(z, fma(z, fma(z, 0.090909, 0.1111111), 0.14285715), 0.2), 0.33333334);
  // 1 / ln 2 is 1.4423828125 and 0.000312228...
  let product = held(2.0 * s * 1.4423828125);
  let log_lead = leading(product);
  let log_rest = held(product - log_lead) + (2.0 * s * 3.1222839e-4 + (2.0 * s_rest + tail) * 1.44269504);
  let y_lead = leading(y);
  let y_rest = held(y - y_lead);
  let by_e = held(y_lead * e);
  let by_log = held(y_lead * log_lead);
  let small = held(y_rest * e) + (held(y_rest * log_lead) + y * log_rest);
  let sum = by_e + by_log + small;
  if (sum >= 128.5) { return inf_f32(); }
  if (sum < -151.0) { return 0.0; }
  let n = round(sum);
  return exp2_parts(n, held(held(by_e - n) + by_log) + small);
}

fn pow_f32(x: f32, y: f32) -> f32 {
  if (eq_f32(x, 1.0) || eq_f32(y, 0.0)) { return 1.0; }
  if (is_nan_f32(x) || is_nan_f32(y)) { return nan_f32(); }
  let magnitude = abs_f32(x);
  let size = abs_f32(y);
  let whole = size >= 8388608.0 || floor(size) == size;
  let odd = size < 16777216.0 && whole && fract(size * 0.5) != 0.0;
  let negative = signbit_f32(x);
  var result: f32;
  if (is_inf_f32(y)) {
    if (magnitude == 1.0) { return 1.0; }
    return select(0.0, inf_f32(), (magnitude > 1.0) == (y > 0.0));
  }
  if (magnitude == 0.0 || is_inf_f32(x)) {
    result = select(0.0, inf_f32(), (magnitude != 0.0) == (y > 0.0));
  } else {
    if (negative && !whole) { return nan_f32(); }
    // A power this large is decided by the logarithm's sign alone, and would overflow on the way.
    let clamped = clamp(y, -1e12, 1e12);
    result = pow_positive(magnitude, clamped);
  }
  return select(result, -result, negative && odd);
}

fn reduce(x: f32) -> Angle {
  if (abs_f32(x) > 1024.0) { return reduce_large(x); }
  let n = round(x * 0.63661977);
  let rest = held(held(x - n * 1.5703125) - n * 4.837512969970703125e-4) - n * 7.54978995489188216e-8;
  return Angle(rest, i32(n));
}

fn sin_near(x: f32) -> f32 {
  let z = x * x;
  return fma(x * z, fma(z, fma(z, -1.9515296e-4, 8.3321609e-3), -1.6666655e-1), x);
}
fn cos_near(x: f32) -> f32 {
  let z = x * x;
  return fma(z * z, fma(z, fma(z, 2.4433157e-5, -1.3887316e-3), 4.1666646e-2), fma(z, -0.5, 1.0));
}
fn is_unbounded(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) >= 0x7f800000u; }

fn sin_f32(x: f32) -> f32 {
  if (is_unbounded(x)) { return nan_f32(); }
  if (abs_f32(x) < 1e-4) { return x; }
  let angle = reduce(x);
  let y = select(sin_near(angle.rest), cos_near(angle.rest), (angle.quarter & 1) != 0);
  return select(y, -y, (angle.quarter & 2) != 0);
}
fn cos_f32(x: f32) -> f32 {
  if (is_unbounded(x)) { return nan_f32(); }
  let angle = reduce(x);
  let y = select(cos_near(angle.rest), sin_near(angle.rest), (angle.quarter & 1) != 0);
  return select(y, -y, ((angle.quarter + 1) & 2) != 0);
}
fn tan_f32(x: f32) -> f32 {
  if (is_unbounded(x)) { return nan_f32(); }
  if (abs_f32(x) < 1e-4) { return x; }
  let angle = reduce(x);
  let r = angle.rest;
  let z = r * r;
  let p = fma(z, fma(z, fma(z, fma(z, fma(z, 9.3854019e-3, 3.1199223e-3), 2.4430135e-2), 5.3411281e-2), 1.3338799e-1),
      3.3333157e-1);
  let y = fma(z * r, p, r);
  return select(y, -1.0 / y, (angle.quarter & 1) != 0);
}
fn sinc_f32(a: f32) -> f32 {
  if (eq_f32(a, 0.0)) { return 1.0; }
  let x = a * 3.14159265;
  return sin_f32(x) / x;
}

// asin for |x| up to a half.
fn asin_near(x: f32) -> f32 {
  let z = x * x;
  let p = fma(z, fma(z, fma(z, fma(z, 4.21632e-2, 2.4181311e-2), 4.5470026e-2), 7.4953003e-2), 1.6666752e-1);
  return fma(x * z, p, x);
}
fn asin_f32(x: f32) -> f32 {
  let a = abs_f32(x);
  if (a > 1.0 || is_nan_f32(x)) { return nan_f32(); }
  if (a <= 0.5) { return asin_near(x); }
  return copysign_f32(1.57079633 - 2.0 * asin_near(sqrt(0.5 * (1.0 - a))), x);
}
fn acos_f32(x: f32) -> f32 {
  let a = abs_f32(x);
  if (a > 1.0 || is_nan_f32(x)) { return nan_f32(); }
  if (a <= 0.5) { return 1.57079633 - asin_near(x); }
  let y = 2.0 * asin_near(sqrt(0.5 * (1.0 - a)));
  return select(y, 3.14159265 - y, x < 0.0);
}

fn atan_positive(a: f32) -> f32 {
  var x = a;
  var base = 0.0;
  if (a > 2.4142136) {
    base = 1.57079633;
    x = -1.0 / a;
  } else if (a > 0.41421356) {
    base = 0.78539816;
    x = (a - 1.0) / (a + 1.0);
  }
  let z = x * x;
  let p = fma(z, fma(z, fma(z, 8.0537445e-2, -1.3877686e-1), 1.9977711e-1), -3.3332949e-1);
  return base + fma(x * z, p, x);
}
fn atan_f32(x: f32) -> f32 {
  if (is_nan_f32(x)) { return x; }
  return copysign_f32(atan_positive(abs_f32(x)), x);
}
fn atan2_f32(y: f32, x: f32) -> f32 {
  if (is_nan_f32(x) || is_nan_f32(y)) { return nan_f32(); }
  let a = abs_f32(x);
  let b = abs_f32(y);
  let larger = max(a, b);
  var ratio = 0.0;
  if (is_inf_f32(x) && is_inf_f32(y)) {
    ratio = 1.0;
  } else if (larger != 0.0) {
    ratio = min(a, b) / larger;
  }
  var angle = atan_positive(ratio);
  if (b > a) { angle = 1.57079633 - angle; }
  if (signbit_f32(x)) { angle = 3.14159265 - angle; }
  return copysign_f32(angle, y);
}

fn sinh_f32(x: f32) -> f32 {
  let a = abs_f32(x);
  if (a > 80.0) {
    let root = exp_f32(0.5 * a);
    return copysign_f32(0.5 * root * root, x);
  }
  if (a < 1.0) {
    let z = x * x;
    return fma(x * z, fma(z, fma(z, fma(z, 2.7557319e-6, 1.9841270e-4), 8.3333333e-3), 1.6666667e-1), x);
  }
  let y = exp_f32(a);
  return copysign_f32(0.5 * y - 0.5 / y, x);
}
fn cosh_f32(x: f32) -> f32 {
  let a = abs_f32(x);
  let root = exp_f32(0.5 * min(a, 1000.0));
  let y = select(root * root, exp_f32(a), a < 80.0);
  if (is_nan_f32(x)) { return x; }
  if (a > 80.0) { return 0.5 * root * root; }
  return 0.5 * y + 0.5 / y;
}
fn asinh_f32(x: f32) -> f32 {
  let a = abs_f32(x);
  if (a > 1e9) { return copysign_f32(log_f32(a) + 0.69314718, x); }
  return copysign_f32(log1p_f32(a + a * a / (1.0 + sqrt(fma(a, a, 1.0)))), x);
}
fn acosh_f32(x: f32) -> f32 {
  if (x < 1.0) { return nan_f32(); }
  if (x > 1e9) { return log_f32(x) + 0.69314718; }
  let t = x - 1.0;
  return log1p_f32(t + sqrt(t * (2.0 + t)));
}
fn atanh_f32(x: f32) -> f32 {
  let a = abs_f32(x);
  if (a > 1.0) { return nan_f32(); }
  if (a == 1.0) { return copysign_f32(inf_f32(), x); }
  return copysign_f32(0.5 * log1p_f32(2.0 * a / (1.0 - a)), x);
}

fn hypot_f32(a: f32, b: f32) -> f32 {
  if (is_inf_f32(a) || is_inf_f32(b)) { return inf_f32(); }
  if (is_nan_f32(a) || is_nan_f32(b)) { return nan_f32(); }
  let larger = max(abs_f32(a), abs_f32(b));
  if (larger == 0.0) { return 0.0; }
  let ratio = min(abs_f32(a), abs_f32(b)) / larger;
  return larger * sqrt(fma(ratio, ratio, 1.0));
}

// A Chebyshev fit with a relative error of 1.2e-7.
fn erfc_f32(x: f32) -> f32 {
  if (is_nan_f32(x)) { return x; }
  if (abs_f32(x) < 0.5) { return 1.0 - erf_f32(x); }
  let z = min(abs_f32(x), 20.0);
  let t = 1.0 / fma(z, 0.5, 1.0);
  let p = fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, 0.17087277, -0.82215223), 1.48851587),
      -1.13520398), 0.27886807), -0.18628806), 0.09678418), 0.37409196), 1.00002368), -1.26551223);
  // The square's rounding would be magnified: its leading part is exact.
  let lead = leading(z);
  let y = t * exp_f32(-lead * lead) * exp_f32(fma(lead - z, lead + z, p));
  return select(y, 2.0 - y, x < 0.0);
}
// M. Giles, Approximating the erfinv function.
fn erfinv_f32(x: f32) -> f32 {
  let a = abs_f32(x);
  if (a > 1.0 || is_nan_f32(x)) { return nan_f32(); }
  if (a == 1.0) { return copysign_f32(inf_f32(), x); }
  let w = -log_f32((1.0 - x) * (1.0 + x));
  if (w < 5.0) {
    let v = w - 2.5;
    return x * fma(v, fma(v, fma(v, fma(v, fma(v, fma(v, fma(v, fma(v, 2.81022636e-8, 3.43273939e-7), -3.5233877e-6),
        -4.39150654e-6), 2.1858087e-4), -1.25372503e-3), -4.17768164e-3), 0.246640727), 1.50140941);
  }
  let v = sqrt(w) - 3.0;
  return x * fma(v, fma(v, fma(v, fma(v, fma(v, fma(v, fma(v, fma(v, -2.00214257e-4, 1.00950558e-4), 1.34934322e-3),
      -3.67342844e-3), 5.73950773e-3), -7.6224613e-3), 9.43887047e-3), 1.00167406), 2.83297682);
}

fn logaddexp_f32(a: f32, b: f32) -> f32 {
  if (is_inf_f32(a) && a == b) { return a; }
  return max_f32(a, b) + log1p_f32(exp_f32(-abs_f32(a - b)));
}
fn logaddexp2_f32(a: f32, b: f32) -> f32 {
  if (is_inf_f32(a) && a == b) { return a; }
  return max_f32(a, b) + log1p_f32(exp2_f32(-abs_f32(a - b))) * 1.44269504;
}
fn xlogy_f32(a: f32, b: f32) -> f32 {
  if (is_nan_f32(b)) { return b; }
  if (eq_f32(a, 0.0)) { return 0.0; }
  return a * log_f32(b);
}

// The next number towards b, on the grid of a narrower dtype whose last bit is `unit`.
fn nextafter_f32(a: f32, b: f32, unit: u32) -> f32 {
  if (is_nan_f32(a) || is_nan_f32(b)) { return nan_f32(); }
  let bits = bitcast<u32>(a);
  if (a == b || bits == bitcast<u32>(b)) { return b; }
  if ((bits & 0x7fffffffu) == 0u) { return bitcast<f32>((bitcast<u32>(b) & 0x80000000u) | unit); }
  return bitcast<f32>(select(bits - unit, bits + unit, (b > a) == ((bits & 0x80000000u) == 0u)));
}
fn nextafter_half(a: f32, b: f32) -> f32 {
  if (is_nan_f32(a) || is_nan_f32(b)) { return nan_f32(); }
  if (a == b) { return b; }
  let bits = store_f16(a);
  if ((bits & 0x7fffu) == 0u) { return load_f16(((bitcast<u32>(b) >> 16u) & 0x8000u) | 1u); }
  return load_f16(select(bits - 1u, bits + 1u, (b > a) == ((bits & 0x8000u) == 0u)));
}

// frexp: x is mantissa * 2^exponent with a mantissa of a half or more, below one.
fn exponent_f32(x: f32) -> f32 {
  let bits = bitcast<u32>(x) & 0x7fffffffu;
  if (bits == 0u || bits >= 0x7f800000u) { return 0.0; }
  if (bits < 0x800000u) { return -117.0 - f32(countLeadingZeros(bits)); }
  return f32(bits >> 23u) - 126.0;
}
fn mantissa_f32(x: f32) -> f32 {
  let bits = bitcast<u32>(x) & 0x7fffffffu;
  if (bits == 0u || bits >= 0x7f800000u) { return x; }
  var mantissa = bits;
  if (bits < 0x800000u) { mantissa = bits << (countLeadingZeros(bits) - 8u); }
  return bitcast<f32>((bitcast<u32>(x) & 0x80000000u) | 0x3f000000u | (mantissa & 0x7fffffu));
}
