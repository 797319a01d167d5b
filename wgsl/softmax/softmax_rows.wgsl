// A subgroup per row, walked twice.
@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  take_params();
  let end = min((group.x + 1u) * chunk(), rows());
  for (var i = group.x * chunk(); i < end; i++) {
    let row = row_at(i);
    write_row(row, join_lanes(fold_row(row, lane, WORKGROUP)), lane, WORKGROUP);
  }
}
