// A workgroup takes the tasks of its chunk in turn, with all its lanes.
@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  take_params();
  let begin = group.x * chunk();
  let end = min(begin + chunk(), tasks());
  for (var task = begin; task < end; task++) {
    run(task, lane);
    workgroupBarrier();
  }
}
