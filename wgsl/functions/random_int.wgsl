// Random words into integers: word(5) and word(6) are the first, word(7) and word(8) how many there are.

// Multiplying and keeping the high word spreads 2^32 values over so few that the excess of some is below 2^-8.
fn random_small(bits: u32) -> vec2<u32> {
  return add_i64(vec2<u32>(word(5u), word(6u)), vec2<u32>(mul_wide(bits, word(7u)).y, 0u));
}

// The same with 64 bits; a count of zero stands for 2^64.
fn random_large(block: vec4<u32>) -> vec2<u32> {
  let first = vec2<u32>(word(5u), word(6u));
  let count = vec2<u32>(word(7u), word(8u));
  if ((count.x | count.y) == 0u) { return block.xy; }
  let low = mul_wide(block.x, count.x);
  let left = add_i64(mul_wide(block.x, count.y), vec2<u32>(low.y, 0u));
  let right = add_i64(mul_wide(block.y, count.x), vec2<u32>(left.x, 0u));
  let high = add_i64(mul_wide(block.y, count.y), vec2<u32>(left.y, 0u));
  return add_i64(first, add_i64(high, vec2<u32>(right.y, 0u)));
}

// The rank of the element's own word among those of all word(5) elements: a permutation of few elements.
fn random_rank(index: u32, bits: u32) -> vec2<u32> {
  var rank = 0u;
  for (var first = 0u; first < word(5u); first += 4u) {
    let block = random_block(first / 4u);
    for (var lane = 0u; lane < min(4u, word(5u) - first); lane++) {
      let other = block[lane];
      rank += u32(other < bits || (other == bits && first + lane < index));
    }
  }
  return vec2<u32>(rank, 0u);
}
