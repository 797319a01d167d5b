// needs: wide
// Arithmetic of int64 as a pair of words, low word first: exact in all 64 bits.

const zero_i64 = vec2<u32>(0u, 0u);
const one_i64 = vec2<u32>(1u, 0u);

fn i64_from_u32(x: u32) -> vec2<u32> { return vec2<u32>(x, 0u); }
fn i64_from_i32(x: i32) -> vec2<u32> { return vec2<u32>(bitcast<u32>(x), bitcast<u32>(x >> 31u)); }
fn i64_from_bool(x: bool) -> vec2<u32> { return vec2<u32>(u32(x), 0u); }
fn bool_from_i64(x: vec2<u32>) -> bool { return (x.x | x.y) != 0u; }
fn i32_from_i64(x: vec2<u32>) -> i32 { return bitcast<i32>(x.x); }

// Truncates; out of range and NaN give the smallest integer, as x86 does.
fn i64_from_f32(x: f32) -> vec2<u32> {
  let bits = bitcast<u32>(x);
  let exponent = (bits >> 23u) & 0xffu;
  if (exponent >= 190u) { return vec2<u32>(0u, 0x80000000u); }
  if (exponent < 127u) { return vec2<u32>(0u, 0u); }
  let mantissa = (bits & 0x7fffffu) | 0x800000u;
  var magnitude: vec2<u32>;
  if (exponent <= 150u) {
    magnitude = vec2<u32>(mantissa >> (150u - exponent), 0u);
  } else {
    magnitude = shl_u64(vec2<u32>(mantissa, 0u), exponent - 150u);
  }
  if ((bits & 0x80000000u) != 0u) { return neg_i64(magnitude); }
  return magnitude;
}

// Rounds to nearest even, once.
fn f32_from_i64(x: vec2<u32>) -> f32 {
  let negative = (x.y & 0x80000000u) != 0u;
  var magnitude = x;
  if (negative) { magnitude = neg_i64(x); }
  let value = f32_from_u64(magnitude);
  return select(value, -value, negative);
}
fn f32_from_u64(magnitude: vec2<u32>) -> f32 {
  if (magnitude.y == 0u) { return f32_from_u32(magnitude.x); }
  let width = 32u - countLeadingZeros(magnitude.y);
  let shift = width + 8u;  // leaves 24 bits
  let kept = shr_u64(magnitude, shift).x + u32(rounds_up_u64(magnitude, shift));
  return f32(kept) * bitcast<f32>((127u + shift) << 23u);
}

// Whether the bits above the last `shift` bits, of which there is at least one, are to be rounded up, to nearest even.
fn rounds_up_u64(a: vec2<u32>, shift: u32) -> bool {
  let kept = shr_u64(a, shift);
  let rest = sub_i64(a, shl_u64(kept, shift));
  let half = shl_u64(vec2<u32>(1u, 0u), shift - 1u);
  return lt_u64(half, rest) || (eq_i64(half, rest) && (kept.x & 1u) == 1u);
}

fn f32_from_u32(x: u32) -> f32 {
  if (x < 0x1000000u) { return f32(x); }
  let shift = 8u - countLeadingZeros(x);
  let kept = x >> shift;
  let rest = x & ((1u << shift) - 1u);
  let half = 1u << (shift - 1u);
  let up = rest > half || (rest == half && (kept & 1u) == 1u);
  return f32(kept + u32(up)) * f32(1u << shift);
}

fn shl_u64(a: vec2<u32>, n: u32) -> vec2<u32> {
  if (n == 0u) { return a; }
  if (n >= 64u) { return vec2<u32>(0u, 0u); }
  if (n >= 32u) { return vec2<u32>(0u, a.x << (n - 32u)); }
  return vec2<u32>(a.x << n, (a.y << n) | (a.x >> (32u - n)));
}
fn shr_u64(a: vec2<u32>, n: u32) -> vec2<u32> {
  if (n == 0u) { return a; }
  if (n >= 64u) { return vec2<u32>(0u, 0u); }
  if (n >= 32u) { return vec2<u32>(a.y >> (n - 32u), 0u); }
  return vec2<u32>((a.x >> n) | (a.y << (32u - n)), a.y >> n);
}
fn lt_u64(a: vec2<u32>, b: vec2<u32>) -> bool { return a.y < b.y || (a.y == b.y && a.x < b.x); }

fn is_nan_i64(a: vec2<u32>) -> bool { return false; }
fn add_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let low = a.x + b.x;
  return vec2<u32>(low, a.y + b.y + u32(low < a.x));
}
fn sub_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> { return vec2<u32>(a.x - b.x, a.y - b.y - u32(a.x < b.x)); }
fn neg_i64(a: vec2<u32>) -> vec2<u32> { return sub_i64(vec2<u32>(0u, 0u), a); }
fn mul_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let low = mul_wide(a.x, b.x);
  return vec2<u32>(low.x, low.y + a.x * b.y + a.y * b.x);
}
fn is_negative_i64(a: vec2<u32>) -> bool { return (a.y & 0x80000000u) != 0u; }
fn abs_i64(a: vec2<u32>) -> vec2<u32> { return select(a, neg_i64(a), is_negative_i64(a)); }
fn eq_i64(a: vec2<u32>, b: vec2<u32>) -> bool { return a.x == b.x && a.y == b.y; }
fn ne_i64(a: vec2<u32>, b: vec2<u32>) -> bool { return a.x != b.x || a.y != b.y; }
fn lt_i64(a: vec2<u32>, b: vec2<u32>) -> bool {
  return lt_u64(vec2<u32>(a.x, a.y ^ 0x80000000u), vec2<u32>(b.x, b.y ^ 0x80000000u));
}
fn gt_i64(a: vec2<u32>, b: vec2<u32>) -> bool { return lt_i64(b, a); }
fn le_i64(a: vec2<u32>, b: vec2<u32>) -> bool { return !lt_i64(b, a); }
fn ge_i64(a: vec2<u32>, b: vec2<u32>) -> bool { return !lt_i64(a, b); }
fn max_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> { return select(a, b, lt_i64(a, b)); }
fn min_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> { return select(a, b, lt_i64(b, a)); }
fn from_index_i64(index: u32) -> vec2<u32> { return vec2<u32>(index, 0u); }
fn lowest_i64() -> vec2<u32> { return vec2<u32>(0u, 0x80000000u); }
fn highest_i64() -> vec2<u32> { return vec2<u32>(0xffffffffu, 0x7fffffffu); }
fn bit_and_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> { return a & b; }
fn bit_or_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> { return a | b; }
fn bit_xor_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> { return a ^ b; }
fn bit_not_i64(a: vec2<u32>) -> vec2<u32> { return ~a; }
fn mul_add_i64(a: vec2<u32>, b: vec2<u32>, c: vec2<u32>) -> vec2<u32> { return add_i64(mul_i64(a, b), c); }

fn is_posinf_i64(a: vec2<u32>) -> bool { return false; }
fn is_neginf_i64(a: vec2<u32>) -> bool { return false; }
fn signbit_i64(a: vec2<u32>) -> bool { return is_negative_i64(a); }
fn is_zero_i64(a: vec2<u32>) -> bool { return (a.x | a.y) == 0u; }
fn sign_i64(a: vec2<u32>) -> vec2<u32> {
  return select(vec2<u32>(u32(!is_zero_i64(a)), 0u), vec2<u32>(0xffffffffu), is_negative_i64(a));
}
fn heaviside_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return select(vec2<u32>(u32(!is_negative_i64(a)), 0u), b, is_zero_i64(a));
}
fn fmax_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> { return max_i64(a, b); }
fn fmin_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> { return min_i64(a, b); }
fn floor_i64(a: vec2<u32>) -> vec2<u32> { return a; }
fn ceil_i64(a: vec2<u32>) -> vec2<u32> { return a; }
fn trunc_i64(a: vec2<u32>) -> vec2<u32> { return a; }
fn round_i64(a: vec2<u32>) -> vec2<u32> { return a; }

fn clz_u64(a: vec2<u32>) -> u32 { return select(countLeadingZeros(a.y), 32u + countLeadingZeros(a.x), a.y == 0u); }
fn ctz_u64(a: vec2<u32>) -> u32 { return select(countTrailingZeros(a.x), 32u + countTrailingZeros(a.y), a.x == 0u); }

// Quotient and remainder, low words first; by long division, a bit at a time. The divisor is not zero.
fn div_rem_u64(a: vec2<u32>, b: vec2<u32>) -> vec4<u32> {
  if ((a.y | b.y) == 0u) { return vec4<u32>(a.x / b.x, 0u, a.x % b.x, 0u); }
  if (lt_u64(a, b)) { return vec4<u32>(0u, 0u, a); }
  var left = clz_u64(b) - clz_u64(a);
  var divisor = shl_u64(b, left);
  var rest = a;
  var quotient = vec2<u32>(0u, 0u);
  loop {
    quotient = vec2<u32>(quotient.x << 1u, (quotient.y << 1u) | (quotient.x >> 31u));
    if (!lt_u64(rest, divisor)) {
      rest = sub_i64(rest, divisor);
      quotient.x |= 1u;
    }
    if (left == 0u) { break; }
    divisor = vec2<u32>((divisor.x >> 1u) | (divisor.y << 31u), divisor.y >> 1u);
    left -= 1u;
  }
  return vec4<u32>(quotient, rest);
}

// The CPU raises ZeroDivisionError; a device cannot, and gives all bits set for the quotient, as CUDA does, and the
// dividend for the remainder. The smallest integer by -1 is itself.
fn div_trunc_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  if (is_zero_i64(b)) { return vec2<u32>(0xffffffffu); }
  let quotient = div_rem_u64(abs_i64(a), abs_i64(b)).xy;
  return select(quotient, neg_i64(quotient), is_negative_i64(a) != is_negative_i64(b));
}
fn quotient_i64(a: vec2<u32>, count: i32) -> vec2<u32> { return div_trunc_i64(a, i64_from_i32(count)); }
fn fmod_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  if (is_zero_i64(b)) { return a; }
  let rest = div_rem_u64(abs_i64(a), abs_i64(b)).zw;
  return select(rest, neg_i64(rest), is_negative_i64(a));
}
fn remainder_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let rest = fmod_i64(a, b);
  let up = !is_zero_i64(rest) && is_negative_i64(b) != is_negative_i64(rest) && !is_zero_i64(b);
  return select(rest, add_i64(rest, b), up);
}
fn div_floor_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  if (is_zero_i64(b)) { return vec2<u32>(0xffffffffu); }
  let parts = div_rem_u64(abs_i64(a), abs_i64(b));
  if (is_negative_i64(a) == is_negative_i64(b)) { return parts.xy; }
  return neg_i64(add_i64(parts.xy, vec2<u32>(u32(!is_zero_i64(parts.zw)), 0u)));
}

// A negative shift count, or one of all bits and more, shifts everything out.
fn shl_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> { return shl_u64(a, select(b.x, 64u, b.y != 0u)); }
fn shr_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let n = select(b.x, 64u, b.y != 0u);
  if (is_negative_i64(a)) { return ~shr_u64(~a, n); }
  return shr_u64(a, n);
}

// Wraps as the product does; only 1 and -1 have a reciprocal.
fn pow_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  var power = a;
  var left = b;
  if (is_negative_i64(b)) {
    if (!eq_i64(abs_i64(a), one_i64)) { return zero_i64; }
    left = vec2<u32>(b.x & 1u, 0u);
  }
  var result = one_i64;
  while ((left.x | left.y) != 0u) {
    if ((left.x & 1u) != 0u) { result = mul_i64(result, power); }
    power = mul_i64(power, power);
    left = vec2<u32>((left.x >> 1u) | (left.y << 31u), left.y >> 1u);
  }
  return result;
}

// Computed on magnitudes. The magnitude of the smallest integer is negative; C's remainder then decides the sign.
fn gcd_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  var x = a;
  var y = b;
  if (is_negative_i64(x) || is_negative_i64(y)) {
    while (!is_zero_i64(x)) {
      let rest = fmod_i64(y, x);
      y = x;
      x = rest;
    }
    return y;
  }
  // By halving and subtracting, without a division.
  if (is_zero_i64(x)) { return y; }
  if (is_zero_i64(y)) { return x; }
  let twos = min(ctz_u64(x), ctz_u64(y));
  x = shr_u64(x, ctz_u64(x));
  loop {
    y = shr_u64(y, ctz_u64(y));
    if (lt_u64(y, x)) {
      let larger = x;
      x = y;
      y = larger;
    }
    y = sub_i64(y, x);
    if (is_zero_i64(y)) { break; }
  }
  return shl_u64(x, twos);
}
fn lcm_i64(a: vec2<u32>, b: vec2<u32>, divisor: vec2<u32>) -> vec2<u32> {
  if (is_zero_i64(divisor)) { return zero_i64; }
  return abs_i64(mul_i64(div_trunc_i64(a, divisor), b));
}
