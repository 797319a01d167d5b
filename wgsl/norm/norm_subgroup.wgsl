// A workgroup is exactly a subgroup: lanes join by exchange.
fn total(x: f32) -> f32 {
  var all = x;
  for (var half = WORKGROUP / 2u; half > 0u; half /= 2u) { all += subgroupShuffleXor(all, half); }
  return all;
}
