// A row per team of lanes, of which a workgroup has several: for rows too short to busy all its lanes.
const TEAMS = WORKGROUP / TEAM;
var<workgroup> lanes: array<array<Stat, TEAM>, TEAMS>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  take_params();
  let team = lane / TEAM;
  let member = lane % TEAM;
  let begin = group.x * chunk();
  let end = min(begin + chunk(), rows());
  for (var i = begin; i < end; i += TEAMS) {
    let row = row_at(min(i + team, end - 1u));
    lanes[team][member] = fold_row(row, member, TEAM);
    workgroupBarrier();
    for (var half = TEAM / 2u; half > 0u; half /= 2u) {
      if (member < half) { lanes[team][member] = join(lanes[team][member], lanes[team][member + half]); }
      workgroupBarrier();
    }
    if (i + team < end) { write_row(row, lanes[team][0], member, TEAM); }
    workgroupBarrier();
  }
}
