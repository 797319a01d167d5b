// An output per team of lanes, of which a workgroup has several: for rows too short to busy all its lanes.
const TEAMS = WORKGROUP / TEAM;
var<workgroup> lanes: array<array<Acc, TEAM>, TEAMS>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  take_params();
  let team = lane / TEAM;
  let member = lane % TEAM;
  let begin = group.x * chunk();
  let end = min(begin + chunk(), outputs());
  for (var first = begin; first < end; first += TEAMS) {
    let m = first + team;
    lanes[team][member] = fold(kept_offset(min(m, end - 1u)), member, reduced(), TEAM);
    workgroupBarrier();
    for (var half = TEAM / 2u; half > 0u; half /= 2u) {
      if (member < half) { lanes[team][member] = combine(lanes[team][member], lanes[team][member + half]); }
      workgroupBarrier();
    }
    if (member == 0u && m < end) { store(m, lanes[team][0]); }
    workgroupBarrier();
  }
}
