// A row per invocation.
@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  take_params();
  let begin = group.x * chunk();
  let end = min(begin + chunk(), rows());
  for (var i = begin + lane; i < end; i += WORKGROUP) {
    let row = row_at(i);
    write_row(row, fold_row(row, 0u, 1u), 0u, 1u);
  }
}
