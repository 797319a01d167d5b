// A row per workgroup, which is exactly a subgroup: lanes join by exchange.
@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  take_params();
  let begin = group.x * chunk();
  let end = min(begin + chunk(), rows());
  for (var i = begin; i < end; i++) {
    let row = row_at(i);
    var p = fold_row(row, lane, WORKGROUP);
    for (var half = WORKGROUP / 2u; half > 0u; half /= 2u) {
      p = join(p, Stat(subgroupShuffleXor(p.most, half), subgroupShuffleXor(p.sum, half)));
    }
    write_row(row, p, lane, WORKGROUP);
  }
}
