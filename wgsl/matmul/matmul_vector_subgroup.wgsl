// The workgroup is exactly a subgroup: lanes add by exchange.
fn over_lanes(value: vec4<f32>, lane: u32) -> vec4<f32> {
  var sum = value;
  for (var half = WORKGROUP / 2u; half > 0u; half /= 2u) { sum += subgroupShuffleXor(sum, half); }
  return sum;
}
