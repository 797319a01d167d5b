// A row per team of lanes, of which a workgroup has several: for rows too short to busy all its lanes.
const TEAMS = WORKGROUP / TEAM;
var<workgroup> lanes: array<array<f32, TEAM>, TEAMS>;
var<private> lane_index: u32;

fn total(x: f32) -> f32 {
  let team = lane_index / TEAM;
  let member = lane_index % TEAM;
  lanes[team][member] = x;
  workgroupBarrier();
  for (var half = TEAM / 2u; half > 0u; half /= 2u) {
    if (member < half) { lanes[team][member] += lanes[team][member + half]; }
    workgroupBarrier();
  }
  let all = lanes[team][0];
  workgroupBarrier();
  return all;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  take_params();
  lane_index = lane;
  let begin = group.x * chunk();
  let end = min(begin + chunk(), rows());
  for (var first = begin; first < end; first += TEAMS) {
    let row = first + lane / TEAM;
    block(row, 1u, end, lane % TEAM, TEAM, lane % TEAM == 0u && row < end);
  }
}
