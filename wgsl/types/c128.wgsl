// needs: c64 f64
// complex128 as the words of its parts, the real one first: conversions and equality.

const zero_c128 = vec4<u32>(0u, 0u, 0u, 0u);

fn f64_from_c128(a: vec4<u32>) -> vec2<u32> { return a.xy; }
fn c128_from_f64(x: vec2<u32>) -> vec4<u32> { return vec4<u32>(x, 0u, 0u); }
fn c128_from_c64(a: vec2<u32>) -> vec4<u32> {
  return vec4<u32>(f64_from_f32(bitcast<f32>(a.x)), f64_from_f32(bitcast<f32>(a.y)));
}
fn c64_from_c128(a: vec4<u32>) -> vec2<u32> {
  return vec2<u32>(bitcast<u32>(f32_from_f64(a.xy)), bitcast<u32>(f32_from_f64(a.zw)));
}
fn bool_from_c128(a: vec4<u32>) -> bool { return bool_from_f64(a.xy) || bool_from_f64(a.zw); }
fn eq_c128(a: vec4<u32>, b: vec4<u32>) -> bool { return eq_f64(a.xy, b.xy) && eq_f64(a.zw, b.zw); }
fn ne_c128(a: vec4<u32>, b: vec4<u32>) -> bool { return !eq_c128(a, b); }
fn neg_c128(a: vec4<u32>) -> vec4<u32> { return a ^ vec4<u32>(0u, 0x80000000u, 0u, 0x80000000u); }
