// exp of x up to about 0, or NaN, as 2^k * exp(r); what would be denormal is 0. The error is that of the last bit or two:
// adding 1.5 * 2^23 rounds to an integer, which stands in the low bits. The polynomial's terms are taken in pairs: drivers
// that do not fuse a product and a sum wait for each.
fn exp_below(x: vec4<f32>) -> vec4<f32> {
  let bits = bitcast<vec4<u32>>(fma(x, vec4<f32>(1.44269504), vec4<f32>(12582912.0)));
  let k = bitcast<vec4<i32>>(bits - 0x4b400000u);
  let r = fma(vec4<f32>(k), vec4<f32>(-0.693147181), x);
  let z = r * r;
  let tail = fma(z, fma(r, vec4<f32>(0.00829031), vec4<f32>(0.04189794)),
      fma(r, vec4<f32>(0.16667636), vec4<f32>(0.49999149)));
  let p = fma(r, vec4<f32>(0.99999971), vec4<f32>(1.0)) + z * tail;
  let y = p * bitcast<vec4<f32>>((bits << vec4<u32>(23u)) + 0x3f800000u);
  return select(y, vec4<f32>(), x < vec4<f32>(-87.3));
}
