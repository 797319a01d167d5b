// Arithmetic of f32. NaN and infinities are tested by their bits: compilers may assume there are none.

const zero_f32 = 0.0;
const one_f32 = 1.0;

fn is_nan_f32(a: f32) -> bool { return (bitcast<u32>(a) & 0x7fffffffu) > 0x7f800000u; }
fn is_inf_f32(a: f32) -> bool { return (bitcast<u32>(a) & 0x7fffffffu) == 0x7f800000u; }

fn add_f32(a: f32, b: f32) -> f32 { return a + b; }
fn sub_f32(a: f32, b: f32) -> f32 { return a - b; }
fn mul_f32(a: f32, b: f32) -> f32 { return a * b; }
fn neg_f32(a: f32) -> f32 { return bitcast<f32>(bitcast<u32>(a) ^ 0x80000000u); }
fn abs_f32(a: f32) -> f32 { return bitcast<f32>(bitcast<u32>(a) & 0x7fffffffu); }
// Returns the first of equal values; zeros of either sign are equal.
fn max_f32(a: f32, b: f32) -> f32 {
  if (is_nan_f32(a)) { return a; }
  if (is_nan_f32(b)) { return b; }
  return select(a, b, a < b);
}
fn min_f32(a: f32, b: f32) -> f32 {
  if (is_nan_f32(a)) { return a; }
  if (is_nan_f32(b)) { return b; }
  return select(a, b, b < a);
}
fn eq_f32(a: f32, b: f32) -> bool { return a == b && !is_nan_f32(a) && !is_nan_f32(b); }
fn ne_f32(a: f32, b: f32) -> bool { return !eq_f32(a, b); }
fn lt_f32(a: f32, b: f32) -> bool { return a < b && !is_nan_f32(a) && !is_nan_f32(b); }
fn le_f32(a: f32, b: f32) -> bool { return a <= b && !is_nan_f32(a) && !is_nan_f32(b); }
fn gt_f32(a: f32, b: f32) -> bool { return lt_f32(b, a); }
fn ge_f32(a: f32, b: f32) -> bool { return le_f32(b, a); }

// Not a constant expression: those may not be infinite.
fn inf_f32() -> f32 {
  var bits = 0x7f800000u;
  return bitcast<f32>(bits);
}
fn nan_f32() -> f32 {
  var bits = 0x7fc00000u;
  return bitcast<f32>(bits);
}

// 2^n for any n, through a product where the result is below the smallest normal number.
fn exp2i_f32(n: i32) -> f32 {
  if (n < -126) { return bitcast<f32>(u32(max(n + 64 + 127, 0)) << 23u) * bitcast<f32>(u32(127 - 64) << 23u); }
  return bitcast<f32>(u32(min(n, 127) + 127) << 23u);
}

// e^r for |r| up to half of ln 2.
fn exp_near_zero_f32(r: f32) -> f32 {
  let z = r * r;
  let p = fma(z, fma(z, fma(r, 1.9875692e-4, 1.3982000e-3), fma(r, 8.3334519e-3, 4.1665796e-2)),
      fma(r, 1.6666665e-1, 0.5));
  return fma(z, p, r) + 1.0;
}

// y * 2^k, where 2^k alone may be out of range.
fn scale_f32(y: f32, k: i32) -> f32 {
  if (k > 126) { return y * 2.0 * exp2i_f32(k - 1); }
  return y * exp2i_f32(k);
}

// The built-in may be off by 3 + 2|x| units; this one by about one. No branches: lanes would take turns.
fn exp_f32(x: f32) -> f32 {
  let c = clamp(x, -104.0, 89.0);
  let n = round(c * 1.44269504);
  let k = bitcast<i32>(bitcast<u32>(n + 12582912.0) - 0x4b400000u);  // a conversion costs far more
  // f32(k) is n, but not to a compiler that would join the two products into one and lose the low part of ln 2.
  let r = fma(f32(k), -1.42860677e-6, fma(n, -0.693145752, c));
  // 2^k alone may be out of range: by halves.
  let half = k >> 1u;
  let y = exp_near_zero_f32(r) * bitcast<f32>((half + 127) << 23u) * bitcast<f32>((k - half + 127) << 23u);
  return select(select(y, inf_f32(), x > 88.72284), x, is_nan_f32(x));
}

// e^x - 1: a series where the difference would cancel.
fn expm1_f32(x: f32) -> f32 {
  if (abs_f32(x) < 0.5) {
    let p = fma(x, fma(x, fma(x, fma(x, fma(x, fma(x, 2.7557319e-6, 2.4801587e-5), 1.9841270e-4), 1.3888889e-3),
        8.3333333e-3), 4.1666667e-2), 1.6666667e-1);
    return fma(x * x, fma(x, p, 0.5), x);
  }
  return exp_f32(x) - 1.0;
}

// log(1 + f) for 1 + f between the roots of a half and of two.
fn log_near_one_f32(f: f32) -> f32 {
  let s = f / (2.0 + f);
  let z = s * s;
  let series = fma(z, fma(z, fma(z, fma(z, 0.1111111, 0.14285715), 0.2), 0.33333334), 0.0) * s;
  return 2.0 * s + 2.0 * series;
}

// f and e of x = (1 + f) * 2^e with 1 + f as above, for a positive finite x.
fn log_parts_f32(x: f32) -> vec2<f32> {
  let bits = bitcast<u32>(x);
  var exponent = i32(bits >> 23u) - 127;
  var mantissa = bits & 0x7fffffu;
  if (exponent == -127) {
    let shift = countLeadingZeros(mantissa) - 8u;
    mantissa = (mantissa << shift) & 0x7fffffu;
    exponent = -126 - i32(shift);
  }
  if (mantissa > 0x3504f3u) {
    exponent += 1;
    mantissa |= 0x3f000000u;
  } else {
    mantissa |= 0x3f800000u;
  }
  return vec2<f32>(bitcast<f32>(mantissa) - 1.0, f32(exponent));
}

// True where a logarithm of x is special_log_f32(x).
fn is_special_log_f32(x: f32) -> bool {
  let bits = bitcast<u32>(x);
  return bits == 0u || bits >= 0x7f800000u;
}
fn special_log_f32(x: f32) -> f32 {
  let bits = bitcast<u32>(x);
  if ((bits & 0x7fffffffu) == 0u) { return -inf_f32(); }
  if (is_nan_f32(x) || bits == 0x7f800000u) { return x; }
  return nan_f32();
}

// The built-in has an absolute error near 1; this one a relative one.
fn log_f32(x: f32) -> f32 {
  if (is_special_log_f32(x)) { return special_log_f32(x); }
  let parts = log_parts_f32(x);
  return fma(parts.y, 0.693145752, fma(parts.y, 1.42860677e-6, log_near_one_f32(parts.x)));
}

// log(1 + x) without the rounding of 1 + x where it matters.
fn log1p_f32(x: f32) -> f32 {
  if (x > -0.29 && x < 0.41) { return log_near_one_f32(x); }
  return log_f32(1.0 + x);
}

fn rsqrt_f32(a: f32) -> f32 { return 1.0 / sqrt(a); }
fn sigmoid_f32(a: f32) -> f32 { return 1.0 / (1.0 + exp_f32(-a)); }
fn tanh_f32(a: f32) -> f32 {
  let x = abs_f32(a);
  if (x < 0.625) {
    let z = a * a;
    let p = fma(z, fma(z, fma(z, fma(z, -5.7049887e-3, 2.0639089e-2), -5.3739716e-2), 1.3331442e-1), -3.3333282e-1);
    return fma(a * z, p, a);
  }
  let t = expm1_f32(-2.0 * x);
  let y = -t / (t + 2.0);
  return select(y, -y, a < 0.0);
}
fn is_posinf_f32(a: f32) -> bool { return bitcast<u32>(a) == 0x7f800000u; }
fn is_neginf_f32(a: f32) -> bool { return bitcast<u32>(a) == 0xff800000u; }
fn signbit_f32(a: f32) -> bool { return (bitcast<u32>(a) & 0x80000000u) != 0u; }
// By bits: a compiler may make selects a difference, whose zero is negative.
fn sign_f32(a: f32) -> f32 {
  let bits = bitcast<u32>(a);
  let none = (bits & 0x7fffffffu) == 0u || is_nan_f32(a);
  return bitcast<f32>(select((bits & 0x80000000u) | 0x3f800000u, 0u, none));
}
fn heaviside_f32(a: f32, b: f32) -> f32 { return select(select(0.0, 1.0, gt_f32(a, 0.0)), b, eq_f32(a, 0.0)); }
fn copysign_f32(a: f32, b: f32) -> f32 {
  return bitcast<f32>((bitcast<u32>(a) & 0x7fffffffu) | (bitcast<u32>(b) & 0x80000000u));
}
// If one operand is NaN, the result is the other one.
fn fmax_f32(a: f32, b: f32) -> f32 {
  if (is_nan_f32(a)) { return b; }
  if (is_nan_f32(b)) { return a; }
  return select(b, a, a >= b);
}
fn fmin_f32(a: f32, b: f32) -> f32 {
  if (is_nan_f32(a)) { return b; }
  if (is_nan_f32(b)) { return a; }
  return select(b, a, a <= b);
}

// Exact, by long division of the mantissas, eight bits at a time.
fn fmod_f32(a: f32, b: f32) -> f32 {
  let x = bitcast<u32>(a) & 0x7fffffffu;
  let y = bitcast<u32>(b) & 0x7fffffffu;
  if (x >= 0x7f800000u || y > 0x7f800000u || y == 0u) { return nan_f32(); }
  if (x < y) { return a; }
  let exponent = max(y >> 23u, 1u);
  let divisor = select(y & 0x7fffffu, (y & 0x7fffffu) | 0x800000u, y >= 0x800000u);
  var rest = select(x & 0x7fffffu, (x & 0x7fffffu) | 0x800000u, x >= 0x800000u) % divisor;
  var left = max(x >> 23u, 1u) - exponent;
  while (left > 0u && rest != 0u) {
    let bits = min(left, 8u);
    rest = (rest << bits) % divisor;
    left -= bits;
  }
  var result = 0u;
  if (rest != 0u) {
    let shift = min(countLeadingZeros(rest) - 8u, exponent - 1u);
    let normal = ((exponent - shift) << 23u) | ((rest << shift) & 0x7fffffu);
    result = select(rest << shift, normal, (rest << shift) >= 0x800000u);
  }
  return bitcast<f32>(result | (bitcast<u32>(a) & 0x80000000u));
}
fn remainder_f32(a: f32, b: f32) -> f32 {
  let rest = fmod_f32(a, b);
  return select(rest, rest + b, ne_f32(rest, 0.0) && lt_f32(b, 0.0) != lt_f32(rest, 0.0));
}
fn div_trunc_f32(a: f32, b: f32) -> f32 { return trunc(a / b); }
fn div_floor_f32(a: f32, b: f32) -> f32 {
  if (b == 0.0) { return a / b; }
  let rest = fmod_f32(a, b);
  var quotient = (a - rest) / b;
  if (ne_f32(rest, 0.0) && lt_f32(b, 0.0) != lt_f32(rest, 0.0)) { quotient -= 1.0; }
  if (eq_f32(quotient, 0.0)) { return copysign_f32(0.0, a / b); }
  let whole = floor(quotient);
  return select(whole, whole + 1.0, quotient - whole > 0.5);
}

fn quotient_f32(a: f32, count: i32) -> f32 { return a / f32(count); }
fn from_index_f32(index: u32) -> f32 { return f32(index); }
fn lowest_f32() -> f32 { return -inf_f32(); }
fn highest_f32() -> f32 { return inf_f32(); }
fn mul_add_f32(a: f32, b: f32, c: f32) -> f32 { return fma(a, b, c); }

// A quotient of polynomials fitted up to 3.92, beyond which it is 1, within three units in the last place. No branches,
// and terms in pairs. One product with a: a smaller one on the way would be flushed to zero.
fn erf_f32(a: f32) -> f32 {
  let z = min(a * a, 15.3664);
  let zz = z * z;
  let p = fma(zz, fma(zz, fma(zz, 1.99241335e-8, fma(z, -1.95784082e-6, 1.41852724e-4)), fma(z, 3.70170968e-3, 5.05736545e-2)),
      fma(z, 0.199926883, 1.12837911));
  let q = fma(zz, fma(zz, 9.5606281e-4, fma(z, 1.43534103e-2, 0.114999399)), fma(z, 0.510512233, 1.0));
  return select(clamp(a * (p / q), -1.0, 1.0), a, is_nan_f32(a));
}
