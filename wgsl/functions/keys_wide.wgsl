// Pairs of words, the low one first, that order as int64 does.
alias Key = vec2<u32>;
const KEY_BITS = 64u;

fn key_of_i64(x: vec2<u32>) -> vec2<u32> { return vec2<u32>(x.x, x.y ^ 0x80000000u); }
fn no_key() -> vec2<u32> { return vec2<u32>(0u, 0u); }
fn key_less(a: vec2<u32>, b: vec2<u32>) -> bool { return lt_u64(a, b); }
fn key_same(a: vec2<u32>, b: vec2<u32>) -> bool { return eq_i64(a, b); }
fn key_with(a: vec2<u32>, pair: u32, at: u32) -> vec2<u32> {
  if (at < 32u) { return vec2<u32>(a.x | (pair << at), a.y); }
  return vec2<u32>(a.x, a.y | (pair << (at - 32u)));
}
fn nan_key() -> vec2<u32> { return no_key(); }
fn key_is_nan(a: vec2<u32>) -> bool { return false; }
