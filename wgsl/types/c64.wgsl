// needs: f32 storage
// complex64 as the words of its parts, the real one first: conversions and equality.

const zero_c64 = vec2<u32>(0u, 0u);

fn f32_from_c64(a: vec2<u32>) -> f32 { return bitcast<f32>(a.x); }
fn c64_from_f32(x: f32) -> vec2<u32> { return vec2<u32>(bitcast<u32>(x), 0u); }
fn bool_from_c64(a: vec2<u32>) -> bool { return ((a.x | a.y) & 0x7fffffffu) != 0u; }
fn eq_c64(a: vec2<u32>, b: vec2<u32>) -> bool {
  return eq_f32(bitcast<f32>(a.x), bitcast<f32>(b.x)) && eq_f32(bitcast<f32>(a.y), bitcast<f32>(b.y));
}
fn ne_c64(a: vec2<u32>, b: vec2<u32>) -> bool { return !eq_c64(a, b); }
fn neg_c64(a: vec2<u32>) -> vec2<u32> { return a ^ vec2<u32>(0x80000000u); }

// complex32 is a word of two halves.
fn load_c32(raw: u32) -> vec2<u32> { return bitcast<vec2<u32>>(unpack2x16float(raw)); }
fn store_c32(value: vec2<u32>) -> u32 {
  return store_f16(bitcast<f32>(value.x)) | (store_f16(bitcast<f32>(value.y)) << 16u);
}
