"""Functions of random numbers: those of eager's Philox, with the seed of a compiled graph as the key."""

from __future__ import annotations

# `word` is how wgsl/functions/philox.wgsl asks for its key.
RANDOM = {
    "random_key": "var<private> random_key: vec2<u32>;\n"
    "fn word(index: u32) -> u32 { return select(0u, random_key[index & 1u], index < 2u); }",
    "random_words": "fn random_words(seed: vec2<u32>, offset: u32) -> vec4<u32> {\n"
    "  random_key = seed;\n  return random_block(offset);\n}",
    "random_unit_of": "fn random_unit_of(seed: vec2<u32>, offset: u32) -> f32 {\n"
    "  return f32(random_words(seed, offset).x >> 8u) * 5.9604645e-8;\n}",
    "random_normal_of": "fn random_normal_of(seed: vec2<u32>, offset: u32) -> f32 {\n"
    "  let words = random_words(seed, offset);\n"
    "  let radius = sqrt(-2.0 * log_f32((f32(words.x >> 8u) + 0.5) * 5.9604645e-8));\n"
    "  return radius * cos_f32(f32(words.y >> 8u) * 3.7450704e-7);\n}",
    "random_int_of": "fn random_int_of(seed: vec2<u32>, offset: u32, low: vec2<u32>, high: vec2<u32>) -> vec2<u32> {\n"
    "  let words = random_words(seed, offset);\n"
    "  return add_i64(low, div_rem_u64(words.xy, sub_i64(high, low)).zw);\n}",
}
