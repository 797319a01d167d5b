// needs: i64
// float64 as a pair of words, the low one first: conversions, comparisons, and what the sign bit does. No arithmetic.

const zero_f64 = vec2<u32>(0u, 0u);
const one_f64 = vec2<u32>(0u, 0x3ff00000u);

fn magnitude_f64(a: vec2<u32>) -> vec2<u32> { return vec2<u32>(a.x, a.y & 0x7fffffffu); }
fn is_zero_f64(a: vec2<u32>) -> bool { return (a.x | (a.y & 0x7fffffffu)) == 0u; }
fn is_nan_f64(a: vec2<u32>) -> bool { return lt_u64(vec2<u32>(0u, 0x7ff00000u), magnitude_f64(a)); }
fn is_posinf_f64(a: vec2<u32>) -> bool { return a.x == 0u && a.y == 0x7ff00000u; }
fn is_neginf_f64(a: vec2<u32>) -> bool { return a.x == 0u && a.y == 0xfff00000u; }
fn signbit_f64(a: vec2<u32>) -> bool { return (a.y & 0x80000000u) != 0u; }
fn neg_f64(a: vec2<u32>) -> vec2<u32> { return vec2<u32>(a.x, a.y ^ 0x80000000u); }
fn abs_f64(a: vec2<u32>) -> vec2<u32> { return magnitude_f64(a); }
fn copysign_f64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return vec2<u32>(a.x, (a.y & 0x7fffffffu) | (b.y & 0x80000000u));
}

fn eq_f64(a: vec2<u32>, b: vec2<u32>) -> bool {
  return (eq_i64(a, b) && !is_nan_f64(a)) || (is_zero_f64(a) && is_zero_f64(b));
}
fn ne_f64(a: vec2<u32>, b: vec2<u32>) -> bool { return !eq_f64(a, b); }
// An integer that is ordered as the numbers are, where they are not NaN.
fn order_f64(a: vec2<u32>) -> vec2<u32> {
  return select(vec2<u32>(a.x, a.y ^ 0x80000000u), ~a, signbit_f64(a));
}
fn lt_f64(a: vec2<u32>, b: vec2<u32>) -> bool {
  if (is_nan_f64(a) || is_nan_f64(b) || (is_zero_f64(a) && is_zero_f64(b))) { return false; }
  return lt_u64(order_f64(a), order_f64(b));
}
fn le_f64(a: vec2<u32>, b: vec2<u32>) -> bool { return lt_f64(a, b) || eq_f64(a, b); }
fn gt_f64(a: vec2<u32>, b: vec2<u32>) -> bool { return lt_f64(b, a); }
fn ge_f64(a: vec2<u32>, b: vec2<u32>) -> bool { return le_f64(b, a); }

fn f64_from_f32(x: f32) -> vec2<u32> {
  let bits = bitcast<u32>(x);
  let sign = bits & 0x80000000u;
  var exponent = (bits >> 23u) & 0xffu;
  var mantissa = bits & 0x7fffffu;
  if (exponent == 0xffu) {
    let quiet = select(0u, 0x80000u, mantissa != 0u);
    return vec2<u32>(mantissa << 29u, sign | 0x7ff00000u | quiet | (mantissa >> 3u));
  }
  if (exponent == 0u) {
    if (mantissa == 0u) { return vec2<u32>(0u, sign); }
    // A denormal of float32 is a normal number here.
    let shift = countLeadingZeros(mantissa) - 8u;
    mantissa = (mantissa << shift) & 0x7fffffu;
    return vec2<u32>(mantissa << 29u, sign | ((897u - shift) << 20u) | (mantissa >> 3u));
  }
  return vec2<u32>(mantissa << 29u, sign | ((exponent + 896u) << 20u) | (mantissa >> 3u));
}
fn f64_from_u64(x: vec2<u32>) -> vec2<u32> {
  if ((x.x | x.y) == 0u) { return zero_f64; }
  let width = 64u - clz_u64(x);
  var significand: vec2<u32>;
  if (width <= 53u) {
    significand = shl_u64(x, 53u - width);
  } else {
    let shift = width - 53u;
    significand = add_i64(shr_u64(x, shift), vec2<u32>(u32(rounds_up_u64(x, shift)), 0u));
  }
  // The leading bit, and a carry from rounding, add to the exponent.
  return vec2<u32>(significand.x, ((1021u + width) << 20u) + significand.y);
}
fn f64_from_i64(x: vec2<u32>) -> vec2<u32> {
  let value = f64_from_u64(abs_i64(x));
  return vec2<u32>(value.x, value.y | (x.y & 0x80000000u));
}
fn f64_from_i32(x: i32) -> vec2<u32> { return f64_from_i64(i64_from_i32(x)); }
fn f64_from_bool(x: bool) -> vec2<u32> { return select(zero_f64, one_f64, x); }

fn bool_from_f64(a: vec2<u32>) -> bool { return !is_zero_f64(a); }

// Rounds to nearest even; what is below the normal numbers becomes a denormal.
fn f32_from_f64(a: vec2<u32>) -> f32 {
  let sign = a.y & 0x80000000u;
  let exponent = (a.y >> 20u) & 0x7ffu;
  var bits = ((a.y & 0xfffffu) << 3u) | (a.x >> 29u);
  if (is_nan_f64(a)) {
    bits |= 0x7fc00000u;
  } else if (exponent >= 1151u) {
    bits = 0x7f800000u;
  } else if (exponent >= 897u) {
    let rest = a.x & 0x1fffffffu;
    let up = rest > 0x10000000u || (rest == 0x10000000u && (bits & 1u) == 1u);
    bits = (((exponent - 896u) << 23u) | bits) + u32(up);
  } else if (exponent >= 873u) {
    let significand = vec2<u32>(a.x, (a.y & 0xfffffu) | 0x100000u);
    let shift = 926u - exponent;
    bits = shr_u64(significand, shift).x + u32(rounds_up_u64(significand, shift));
  } else {
    bits = 0u;
  }
  return bitcast<f32>(sign | bits);
}

// Truncate. Out of range and NaN give the smallest integer, as x86 does.
fn i64_from_f64(a: vec2<u32>) -> vec2<u32> {
  let exponent = (a.y >> 20u) & 0x7ffu;
  if (exponent < 1023u) { return zero_i64; }
  if (exponent >= 1086u) { return vec2<u32>(0u, 0x80000000u); }
  let magnitude = whole_f64(a);
  return select(magnitude, neg_i64(magnitude), signbit_f64(a));
}
// The magnitude of a number from 1 to below 2^64, cut to an integer.
fn whole_f64(a: vec2<u32>) -> vec2<u32> {
  let exponent = (a.y >> 20u) & 0x7ffu;
  let significand = vec2<u32>(a.x, (a.y & 0xfffffu) | 0x100000u);
  if (exponent <= 1075u) { return shr_u64(significand, 1075u - exponent); }
  return shl_u64(significand, exponent - 1075u);
}
fn i32_from_f64(a: vec2<u32>) -> i32 {
  if (((a.y >> 20u) & 0x7ffu) >= 1054u) { return bitcast<i32>(0x80000000u); }
  return bitcast<i32>(i64_from_f64(a).x);
}
fn u64_from_f64(a: vec2<u32>) -> vec2<u32> {
  if (((a.y >> 20u) & 0xfffu) == 1086u) { return whole_f64(a); }
  return i64_from_f64(a);
}
