// needs: wide
// Philox4x32-10: four random words from a key and a counter, in integer arithmetic alone, so the same on every adapter.
// word(0) and word(1) are the seed, word(2) and word(3) the counter of the first block.

fn philox_round(counter: vec4<u32>, key: vec2<u32>) -> vec4<u32> {
  let p = mul_wide(0xd2511f53u, counter.x);
  let q = mul_wide(0xcd9e8d57u, counter.z);
  return vec4<u32>(q.y ^ counter.y ^ key.x, q.x, p.y ^ counter.w ^ key.y, p.x);
}

// What rejects its first words takes those of further attempts, which no other block has.
fn random_attempt(index: u32, attempt: u32) -> vec4<u32> {
  let low = word(2u) + index;
  var counter = vec4<u32>(low, word(3u) + u32(low < index), attempt, 0u);
  var key = vec2<u32>(word(0u), word(1u));
  for (var i = 0u; i < 10u; i++) {
    counter = philox_round(counter, key);
    key += vec2<u32>(0x9e3779b9u, 0xbb67ae85u);
  }
  return counter;
}

fn random_block(index: u32) -> vec4<u32> { return random_attempt(index, 0u); }
