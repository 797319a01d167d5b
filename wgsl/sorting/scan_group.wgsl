// Scans blocks of lines, a block per workgroup: each lane has four items of a step, which lie a workgroup apart. Lanes join
// in groups of MEMBERS, whose four sums some of the lanes walk in turn.
const WHOLE = 0u;  // one block per line
const PARTS = 1u;  // only the blocks' accumulators
const CARRY = 2u;  // all but the accumulators
const JOIN = 3u;   // the accumulators themselves, in place
const MEMBERS = 16u;
const GROUPS = WORKGROUP / MEMBERS;
var<workgroup> lanes: array<array<array<Acc, 4>, 17>, GROUPS>;  // padded by one; first the lane's sums, then all before them
var<workgroup> groups: array<array<Acc, 4>, GROUPS>;

fn join_lanes(lane: u32) {
  workgroupBarrier();
  if (lane < GROUPS * 4u) {
    let group = lane / 4u;
    let turn = lane % 4u;
    var total = identity();
    for (var member = 0u; member < MEMBERS; member++) {
      let next = lanes[group][member][turn];
      lanes[group][member][turn] = total;
      total = combine(total, next);
    }
    groups[group][turn] = total;
  }
  workgroupBarrier();
}

// All that lies before a lane's item of this turn; `total` becomes all that lies before the next turn.
fn before(lane: u32, turn: u32, total: ptr<function, Acc>) -> Acc {
  var found = *total;
  for (var group = 0u; group < GROUPS; group++) {
    let sum = groups[group][turn];
    if (group < lane / MEMBERS) { found = combine(found, sum); }
    *total = combine(*total, sum);
  }
  return combine(found, lanes[lane / MEMBERS][lane % MEMBERS][turn]);
}

fn run(task: u32, lane: u32) {
  let block = task % blocks();
  let line = task / blocks();
  let first = block * span();
  let end = min(first + span(), length());
  var total = identity();
  if (VARIANT == CARRY && block > 0u) { total = Acc(load_part(task - 1u), load_tag(task - 1u)); }
  for (var step = first; step < end; step += 4u * WORKGROUP) {
    let at = step + lane;
    let a = scanned(line, at, end);
    let b = scanned(line, at + WORKGROUP, end);
    let c = scanned(line, at + 2u * WORKGROUP, end);
    let d = scanned(line, at + 3u * WORKGROUP, end);
    lanes[lane / MEMBERS][lane % MEMBERS][0] = last_of(a);
    lanes[lane / MEMBERS][lane % MEMBERS][1] = last_of(b);
    lanes[lane / MEMBERS][lane % MEMBERS][2] = last_of(c);
    lanes[lane / MEMBERS][lane % MEMBERS][3] = last_of(d);
    join_lanes(lane);
    let before_a = before(lane, 0u, &total);
    let before_b = before(lane, 1u, &total);
    let before_c = before(lane, 2u, &total);
    let before_d = before(lane, 3u, &total);
    if (VARIANT != PARTS) {
      if (at < end) { keep(line, at, before_a, a); }
      if (at + WORKGROUP < end) { keep(line, at + WORKGROUP, before_b, b); }
      if (at + 2u * WORKGROUP < end) { keep(line, at + 2u * WORKGROUP, before_c, c); }
      if (at + 3u * WORKGROUP < end) { keep(line, at + 3u * WORKGROUP, before_d, d); }
    }
    workgroupBarrier();
  }
  if (VARIANT == PARTS && lane == 0u) {
    store_part(task, total.x);
    store_tag(task, total.y);
  }
}
