// Words that order as the values do: both zeros are one, NaN is above all.
alias Key = u32;
const KEY_BITS = 32u;
const NAN_KEY = 0xffffffffu;  // of an integer it is the key of the largest: HAS_NAN tells

fn key_of_f32(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) { return NAN_KEY; }
  if ((bits & 0x7fffffffu) == 0u) { return 0x80000000u; }
  return select(bits | 0x80000000u, ~bits, (bits & 0x80000000u) != 0u);
}
fn key_of_i32(x: i32) -> u32 { return bitcast<u32>(x) ^ 0x80000000u; }
fn key_of_bool(x: bool) -> u32 { return u32(x); }
fn no_key() -> u32 { return 0u; }
fn key_less(a: u32, b: u32) -> bool { return a < b; }
fn key_same(a: u32, b: u32) -> bool { return a == b; }
fn key_with(a: u32, pair: u32, at: u32) -> u32 { return a | (pair << at); }
fn nan_key() -> u32 { return NAN_KEY; }
fn key_is_nan(a: u32) -> bool { return HAS_NAN && a == NAN_KEY; }
