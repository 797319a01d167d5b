// A workgroup per task, in turns where there are more tasks than workgroups.
@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) local: u32) {
  take_params();
  for (var task = id.x; task < tasks(); task += count.x) { run(task, local); }
}
