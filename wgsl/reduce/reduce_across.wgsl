// Four neighbouring outputs per invocation, or one of the parts they were split into.
@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  take_params();
  let begin = group.x * chunk();
  let end = min(begin + chunk(), outputs() * splits());
  for (var task = begin + lane; task < end; task += WORKGROUP) {
    let first = (task % splits()) * span();
    store_quad(task, fold_quads(kept_offset(task / splits()), first, min(first + span(), reduced()), 1u));
  }
}
