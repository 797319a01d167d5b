// All lanes of a workgroup walk the same rows, ROWS at a time.
@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  take_params();
  lane_index = lane;
  let begin = group.x * chunk();
  let end = min(begin + chunk(), rows());
  for (var row = begin; row < end; row += ROWS) {
    block(row, min(ROWS, end - row), end, lane, WORKGROUP, lane == 0u);
  }
}
var<private> lane_index: u32;
