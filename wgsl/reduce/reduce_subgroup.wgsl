// One task per workgroup, as reduce_group.wgsl, where a workgroup is exactly a subgroup: lanes join by exchange.
@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  take_params();
  let begin = group.x * chunk();
  let end = min(begin + chunk(), outputs() * splits());
  for (var task = begin; task < end; task++) {
    let m = task / splits();
    let first = (task % splits()) * span();
    var p = fold(kept_offset(m), first + lane, min(first + span(), reduced()), WORKGROUP);
    for (var half = WORKGROUP / 2u; half > 0u; half /= 2u) { p = combine(p, exchange(p, half)); }
    if (lane == 0u) { store(task, p); }
  }
}
