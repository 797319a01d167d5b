// A row per workgroup; its lanes join through shared memory.
var<workgroup> lanes: array<Stat, WORKGROUP>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  take_params();
  let begin = group.x * chunk();
  let end = min(begin + chunk(), rows());
  for (var i = begin; i < end; i++) {
    let row = row_at(i);
    lanes[lane] = fold_row(row, lane, WORKGROUP);
    workgroupBarrier();
    for (var half = WORKGROUP / 2u; half > 0u; half /= 2u) {
      if (lane < half) { lanes[lane] = join(lanes[lane], lanes[lane + half]); }
      workgroupBarrier();
    }
    write_row(row, lanes[0], lane, WORKGROUP);
    workgroupBarrier();
  }
}
