// A subgroup per row, which keeps what it needs of the row for the second walk.
alias Known = vec2<f32>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  take_params();
  lane_index = lane;
  let blocks = block_count();
  let end = min((group.x + 1u) * chunk(), rows());
  for (var i = group.x * chunk(); i < end; i++) {
    let row = row_at(i);
    var p = no_stat();
    for (var n = 0u; n < blocks; n++) { p = take_block(p, row, n); }
    let known = constant_of(join_lanes(p));
    for (var n = 0u; n < blocks; n++) { store_pair(row.out, place(n), result_kept(n, known)); }
  }
}
