// needs: workgroup_scan
// The first `taken` of a block of a line, in no order: lanes hold the block's keys and count the digits of those that may
// belong, the most significant digit first, until it is known which do. Of equal keys those with the lowest index
// belong: it is the last word of a key. The elements are all of the line or those chosen before.
const CHOSEN = (VARIANT & 8u) != 0u;
const TURNS = VARIANT >> 8u;  // elements of a lane, at most 32: the bits of a word say something of each
const DIGITS = 256u;
const NONE = 0xffffffffu;  // the index of what fills up a block

// The digit of the last element that belongs; how many come before that digit, how many have it, and whether all of those
// belong.
struct Found { digit: u32, before: u32, all: u32 }
var<workgroup> counters: array<atomic<u32>, DIGITS>;
var<workgroup> found: Found;

fn find_digit(lane: u32, wanted: u32) -> Found {
  let count = atomicLoad(&counters[lane]);
  if (lane == 0u) { found = Found(DIGITS, 0u, 1u); }  // where there are none
  let before = sums_before(lane, count).x;
  if (before < wanted && wanted <= before + count) { found = Found(lane, before, u32(wanted == before + count)); }
  return workgroupUniformLoad(&found);
}

fn digit_of(key: vec2<u32>, own: u32, part: u32) -> u32 {
  let word = part / 4u;
  let words = select(select(key.x, key.y, WORDS == 2u && word == 0u), own, word == WORDS);
  return (words >> (24u - part % 4u * 8u)) & (DIGITS - 1u);
}

fn run(task: u32, lane: u32) {
  let line = task / blocks();
  let begin = task % blocks() * (WORKGROUP * TURNS);
  let count = min(WORKGROUP * TURNS, width() - begin);
  let base = line / inner() * (length() * inner()) + line % inner();
  var keys: array<vec2<u32>, TURNS>;
  var own: array<u32, TURNS>;
  var open = 0u;     // a bit for each element that may belong
  var belongs = 0u;  // and for each that does
  for (var turn = 0u; turn < TURNS; turn++) {
    let i = turn * WORKGROUP + lane;
    own[turn] = begin + min(i, count - 1u);
    if (CHOSEN) { own[turn] = load_chosen(line * width() + own[turn]); }
    keys[turn] = ordered_key(load_input(base + min(own[turn], length() - 1u) * inner()));
    open |= u32(i < count && own[turn] != NONE) << turn;
  }
  var wanted = min(taken(), sums_before(lane, countOneBits(open)).y);
  for (var part = skipped(); ; part++) {  // ends with the index at the latest, which no two have in common
    atomicStore(&counters[lane], 0u);
    workgroupBarrier();
    for (var turn = 0u; turn < TURNS; turn++) {
      if (((open >> turn) & 1u) != 0u) { atomicAdd(&counters[digit_of(keys[turn], own[turn], part)], 1u); }
    }
    workgroupBarrier();
    let last = find_digit(lane, wanted);
    wanted -= last.before;
    var equal = 0u;
    for (var turn = 0u; turn < TURNS; turn++) {
      let digit = digit_of(keys[turn], own[turn], part);
      belongs |= (u32(digit < last.digit) << turn) & open;
      equal |= u32(digit == last.digit) << turn;
    }
    open &= equal;
    if (last.all != 0u) { break; }
  }
  belongs |= open;
  let sums = sums_before(lane, countOneBits(belongs));
  var place = task * taken() + sums.x;
  for (var turn = 0u; turn < TURNS; turn++) {
    if (((belongs >> turn) & 1u) != 0u) {
      store_next(place, own[turn]);
      place++;
    }
  }
  for (var i = sums.y + lane; i < taken(); i += WORKGROUP) { store_next(task * taken() + i, NONE); }
}
