// needs: i64
// uint64 as a pair of words, the low one first: conversions and comparisons. Its words are those of int64.

const zero_u64 = vec2<u32>(0u, 0u);
const one_u64 = vec2<u32>(1u, 0u);

fn is_nan_u64(a: vec2<u32>) -> bool { return false; }
fn is_posinf_u64(a: vec2<u32>) -> bool { return false; }
fn is_neginf_u64(a: vec2<u32>) -> bool { return false; }
fn signbit_u64(a: vec2<u32>) -> bool { return false; }
fn eq_u64(a: vec2<u32>, b: vec2<u32>) -> bool { return eq_i64(a, b); }
fn ne_u64(a: vec2<u32>, b: vec2<u32>) -> bool { return ne_i64(a, b); }
fn gt_u64(a: vec2<u32>, b: vec2<u32>) -> bool { return lt_u64(b, a); }
fn le_u64(a: vec2<u32>, b: vec2<u32>) -> bool { return !lt_u64(b, a); }
fn ge_u64(a: vec2<u32>, b: vec2<u32>) -> bool { return !lt_u64(a, b); }

// Truncates. A negative number wraps; out of range and NaN give 2^63.
fn u64_from_f32(x: f32) -> vec2<u32> {
  let bits = bitcast<u32>(x);
  if ((bits >> 23u) == 190u) { return vec2<u32>(0u, (bits << 8u) | 0x80000000u); }
  return i64_from_f32(x);
}
