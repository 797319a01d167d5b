// Keys: unsigned numbers whose order is the values', NaN last. Equal values have equal keys.
fn float_key(a: f32) -> u32 {
  let bits = bitcast<u32>(a);
  let magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) { return 0xffffffffu; }
  if (magnitude == 0u) { return 0x80000000u; }
  return select(bits | 0x80000000u, ~bits, magnitude != bits);
}

fn half_key(a: f32) -> u32 {
  let bits = store_f16(a);
  let magnitude = bits & 0x7fffu;
  if (magnitude > 0x7c00u) { return 0xffffu; }
  if (magnitude == 0u) { return 0x8000u; }
  return select(bits | 0x8000u, bits ^ 0xffffu, magnitude != bits);
}

fn goes_before(a: vec2<u32>, b: vec2<u32>) -> bool { return a.y < b.y || (a.y == b.y && a.x < b.x); }

// The variant's lowest bits: whether the order is descending, and the words per key.
const DESCENDING = (VARIANT & 1u) != 0u;
const WORDS = (VARIANT >> 1u) & 3u;

fn ordered_key(a: T) -> vec2<u32> {
  let words = key(a);
  return select(words, ~words, vec2<bool>(DESCENDING));
}
