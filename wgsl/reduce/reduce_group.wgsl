// One task per workgroup: an output, or one of the parts it was split into, folded by all lanes and then across them.
var<workgroup> lanes: array<Acc, WORKGROUP>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  take_params();
  let begin = group.x * chunk();
  let end = min(begin + chunk(), outputs() * splits());
  for (var task = begin; task < end; task++) {
    let m = task / splits();
    let first = (task % splits()) * span();
    lanes[lane] = fold(kept_offset(m), first + lane, min(first + span(), reduced()), WORKGROUP);
    workgroupBarrier();
    for (var half = WORKGROUP / 2u; half > 0u; half /= 2u) {
      if (lane < half) { lanes[lane] = combine(lanes[lane], lanes[lane + half]); }
      workgroupBarrier();
    }
    if (lane == 0u) { store(task, lanes[0]); }
    workgroupBarrier();
  }
}
