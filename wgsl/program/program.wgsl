// A workgroup's lanes take the tasks of its chunk in turn.
@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  take_params();
  let begin = group.x * chunk();
  let end = min(begin + chunk(), tasks());
  for (var task = begin + lane; task < end; task += WORKGROUP) { run(task); }
}
