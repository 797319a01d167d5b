// A row per invocation.
fn total(x: f32) -> f32 { return x; }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  take_params();
  let begin = group.x * chunk();
  let end = min(begin + chunk(), rows());
  for (var row = begin + lane; row < end; row += WORKGROUP) { block(row, 1u, end, 0u, 1u, true); }
}
