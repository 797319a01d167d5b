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
  var value: f32;
  if (magnitude.y == 0u) {
    value = f32_from_u32(magnitude.x);
  } else {
    let width = 32u - countLeadingZeros(magnitude.y);
    let shift = width + 8u;  // leaves 24 bits
    let kept = shr_u64(magnitude, shift).x;
    let rest = sub_i64(magnitude, shl_u64(vec2<u32>(kept, 0u), shift));
    let half = shl_u64(vec2<u32>(1u, 0u), shift - 1u);
    let up = lt_u64(half, rest) || (eq_i64(half, rest) && (kept & 1u) == 1u);
    value = f32(kept + u32(up)) * bitcast<f32>((127u + shift) << 23u);
  }
  return select(value, -value, negative);
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

// The full product of two words.
fn mul_wide(a: u32, b: u32) -> vec2<u32> {
  let a0 = a & 0xffffu;
  let a1 = a >> 16u;
  let b0 = b & 0xffffu;
  let b1 = b >> 16u;
  let low = a0 * b0;
  let middle = a1 * b0 + (low >> 16u);
  let cross = a0 * b1 + (middle & 0xffffu);
  return vec2<u32>((cross << 16u) | (low & 0xffffu), a1 * b1 + (middle >> 16u) + (cross >> 16u));
}

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
