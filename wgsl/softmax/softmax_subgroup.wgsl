// A workgroup is exactly a subgroup: lanes join by exchange.
fn join_lanes(lane: Stat) -> Stat {
  var p = lane;
  for (var half = WORKGROUP / 2u; half > 0u; half /= 2u) {
    p = join(p, Stat(subgroupShuffleXor(p.most, half), subgroupShuffleXor(p.sum, half)));
  }
  return p;
}
