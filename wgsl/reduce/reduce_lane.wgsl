// One output per invocation: for short reductions, and for those whose outputs lie side by side.
@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  take_params();
  let begin = group.x * chunk();
  let end = min(begin + chunk(), outputs());
  for (var m = begin + lane; m < end; m += WORKGROUP) {
    store(m, fold(kept_offset(m), 0u, reduced(), 1u));
  }
}
