// Sums over the lanes of a workgroup: of all lanes before each one, and of all. Some of the lanes add up 16 others each.
const MEMBERS = 16u;
var<workgroup> lane_sums: array<array<u32, MEMBERS + 1u>, WORKGROUP / MEMBERS>;  // the last of each row: of the whole row

fn sums_before(lane: u32, value: u32) -> vec2<u32> {
  lane_sums[lane / MEMBERS][lane % MEMBERS] = value;
  workgroupBarrier();
  if (lane < WORKGROUP / MEMBERS) {
    var sum = 0u;
    for (var member = 0u; member < MEMBERS; member++) {
      let next = lane_sums[lane][member];
      lane_sums[lane][member] = sum;
      sum += next;
    }
    lane_sums[lane][MEMBERS] = sum;
  }
  workgroupBarrier();
  var before = lane_sums[lane / MEMBERS][lane % MEMBERS];
  var all = 0u;
  for (var group = 0u; group < WORKGROUP / MEMBERS; group++) {
    let sum = lane_sums[group][MEMBERS];
    before += select(0u, sum, group < lane / MEMBERS);
    all += sum;
  }
  workgroupBarrier();
  return vec2<u32>(before, all);
}
