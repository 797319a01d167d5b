// The workgroups share out the chunks of many tensors. Each finds its tensor in the table by the chunk it begins with.
@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  take_params();
  var tensor = 0u;
  var beyond = tensors();
  while (beyond - tensor > 1u) {
    let middle = (tensor + beyond) / 2u;
    if (first_chunk(middle) <= group.x) { tensor = middle; } else { beyond = middle; }
  }
  enter(tensor);
  let begin = (group.x - first_chunk(tensor)) * chunk();
  let end = min(begin + chunk(), (size + 3u) / 4u);
  for (var step = begin + lane; step < end; step += WORKGROUP) { run(step); }
  leave(lane);
}
