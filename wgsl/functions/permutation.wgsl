// A permutation of many elements, each on its own: a Feistel network over the next power of two, walked on until it is
// back in range. word(0) is the count, word(1) the index of the first element, word(2) the bits of the left half,
// word(3) of the right; then come two words of key for each round.
const PERMUTATION_ROUNDS = 8u;

fn permutation_mix(value: u32) -> u32 {
  var x = value;
  x ^= x >> 16u;
  x *= 0x85ebca6bu;
  x ^= x >> 13u;
  x *= 0xc2b2ae35u;
  return x ^ (x >> 16u);
}

fn permuted(index: u32) -> vec2<u32> {
  let left_mask = (1u << word(2u)) - 1u;
  let right_mask = (1u << word(3u)) - 1u;
  var x = word(1u) + index;
  loop {
    var left = x >> word(3u);
    var right = x & right_mask;
    for (var i = 0u; i < PERMUTATION_ROUNDS; i += 2u) {
      left ^= permutation_mix(permutation_mix(right ^ word(4u + 2u * i)) + word(5u + 2u * i)) & left_mask;
      right ^= permutation_mix(permutation_mix(left ^ word(6u + 2u * i)) + word(7u + 2u * i)) & right_mask;
    }
    x = (left << word(3u)) | right;
    if (x < word(0u)) { break; }
  }
  return vec2<u32>(x, 0u);
}
