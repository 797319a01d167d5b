// A workgroup is exactly a subgroup: lanes join by exchange.
fn total(v: vec4<f32>) -> vec4<f32> {
  var all = v;
  for (var half = WORKGROUP / 2u; half > 0u; half /= 2u) { all += subgroupShuffleXor(all, half); }
  return all;
}
