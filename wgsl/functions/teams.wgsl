// A row per team of lanes, of which a workgroup has several: for rows too short to busy all its lanes. What a lane has of
// its row is a Share: share_of(row, member), joined(p, q), and finish(row, share of all, member) are the family's.
const TEAMS = WORKGROUP / TEAM;
var<workgroup> shares: array<array<Share, TEAM>, TEAMS>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  take_params();
  let team = lane / TEAM;
  let member = lane % TEAM;
  let begin = group.x * chunk();
  let end = min(begin + chunk(), rows());
  for (var first = begin; first < end; first += TEAMS) {
    let row = first + team;
    shares[team][member] = share_of(min(row, end - 1u), member);
    workgroupBarrier();
    for (var half = TEAM / 2u; half > 0u; half /= 2u) {
      if (member < half) { shares[team][member] = joined(shares[team][member], shares[team][member + half]); }
      workgroupBarrier();
    }
    if (row < end) { finish(row, shares[team][0], member); }
    workgroupBarrier();
  }
}
