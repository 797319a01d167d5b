// Each element's key, line by line: an unsigned number whose order is the values', NaN last. Equal values have equal keys.
const DESCENDING = 1u;  // a bit of the variant, beside the number of words per key
const WORDS = VARIANT >> 1u;

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

fn run(task: u32) {
  let line = task / length();
  let place = line / inner() * (length() * inner()) + line % inner() + (task % length()) * inner();
  var words = key(load_input(place));
  if ((VARIANT & DESCENDING) != 0u) { words = ~words; }
  store_keys(task * WORDS, words.x);
  if (WORDS == 2u) { store_keys(task * WORDS + 1u, words.y); }
}
