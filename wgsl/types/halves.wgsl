// Four floats into two words of halves, rounded to nearest even, without a branch: for kernels that store many at once.
fn pack_f16(v: vec4<f32>) -> vec2<u32> {
  let bits = bitcast<vec4<u32>>(v);
  let magnitude = bits & vec4<u32>(0x7fffffffu);
  let normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> vec4<u32>(13u)) & vec4<u32>(1u))) >> vec4<u32>(13u);
  // Adding 0.5 aligns the float's last bit with float16's denormal step.
  let small = bitcast<vec4<u32>>(bitcast<vec4<f32>>(magnitude) + 0.5) - 0x3f000000u;
  var h = select(normal, small, magnitude < vec4<u32>(0x38800000u));
  h = select(h, vec4<u32>(0x7c00u), magnitude >= vec4<u32>(0x477ff000u));
  h = select(h, vec4<u32>(0x7e00u), magnitude > vec4<u32>(0x7f800000u));
  h |= (bits >> vec4<u32>(16u)) & vec4<u32>(0x8000u);
  return h.xz | (h.yw << vec2<u32>(16u));
}

fn pack_bf16(v: vec4<f32>) -> vec2<u32> {
  let bits = bitcast<vec4<u32>>(v);
  let rounded = (bits + 0x7fffu + ((bits >> vec4<u32>(16u)) & vec4<u32>(1u))) >> vec4<u32>(16u);
  let is_nan = (bits & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x7f800000u);
  let h = select(rounded, vec4<u32>(0x7fc0u), is_nan);
  return h.xz | (h.yw << vec2<u32>(16u));
}
