// needs: sort_digits workgroup_scan
// Sorts a block by its digit in workgroup memory, then moves runs of equal digits to their places in the line. What is
// sorted is a word for each item: the digit, and above it where in the block the item is.
const COUNTERS = 9u * WORKGROUP;  // words, of which every ninth pads
var<workgroup> words: array<u32, max(BLOCK, COUNTERS)>;
var<workgroup> starts: array<u32, DIGITS>;  // where a digit's items begin in the block, then where they go, less that

// A lane's counters of four bits' values: eight words, with a count in each half. They are padded, so that lanes which
// add up eight neighbours meet different banks.
fn counter_at(bits: u32, lane: u32) -> u32 {
  let i = (bits & 7u) * WORKGROUP + lane;
  return i + i / 8u;
}

// Sorts the block by four bits, into `words`. A lane has a run of neighbours in `items`, so equal ones keep their order.
fn sort_by(shift: u32, lane: u32, items: ptr<function, array<u32, TURNS>>) {
  var ranks: array<u32, TURNS>;
  for (var bits = 0u; bits < 8u; bits++) { words[counter_at(bits, lane)] = 0u; }
  for (var turn = 0u; turn < TURNS; turn++) {
    let bits = ((*items)[turn] >> shift) & 15u;
    let at = counter_at(bits, lane);
    let half = (bits >> 3u) * 16u;
    let counts = words[at];
    ranks[turn] = (counts >> half) & 0xffffu;
    words[at] = counts + (1u << half);
  }
  workgroupBarrier();
  var sum = 0u;
  for (var i = 0u; i < 8u; i++) { sum += words[lane * 9u + i]; }
  let sums = sums_before(lane, sum);
  var before = sums.x + (sums.y << 16u);  // those of the upper halves come behind all of the lower halves
  for (var i = 0u; i < 8u; i++) {
    let count = words[lane * 9u + i];
    words[lane * 9u + i] = before;
    before += count;
  }
  workgroupBarrier();
  for (var turn = 0u; turn < TURNS; turn++) {
    let bits = ((*items)[turn] >> shift) & 15u;
    ranks[turn] += (words[counter_at(bits, lane)] >> ((bits >> 3u) * 16u)) & 0xffffu;
  }
  workgroupBarrier();
  for (var turn = 0u; turn < TURNS; turn++) { words[ranks[turn]] = (*items)[turn]; }
  workgroupBarrier();
}

fn take_runs(lane: u32, items: ptr<function, array<u32, TURNS>>) {
  for (var turn = 0u; turn < TURNS; turn++) { (*items)[turn] = words[lane * TURNS + turn]; }
  workgroupBarrier();
}

fn store_item(copy: u32, place: u32, element: vec2<u32>, index: u32) {
  store_room(plane_of(copy, 0u) + place, element.x);
  if (WORDS == 2u) { store_room(plane_of(copy, 1u) + place, element.y); }
  store_room(plane_of(copy, WORDS) + place, index);
}

fn store_result(line: u32, place: u32, element: vec2<u32>, index: u32) {
  store_order(line * length() + place, line * length() + index);
  let at = place - first();
  if (at >= taken()) { return; }
  store_values(line * taken() + at, value_of(element));
  store_indices(line * taken() + at, index);
}

fn run(task: u32, lane: u32) {
  if (!is_active(shift())) { return; }
  let line = task / blocks();
  let block = task % blocks();
  let first_of_block = block * BLOCK;
  let count = min(BLOCK, length() - first_of_block);
  let begin = line * length();
  let copy = passes_before();
  var elements: array<vec2<u32>, TURNS>;
  for (var turn = 0u; turn < TURNS; turn++) {
    let place = begin + first_of_block + min(turn * WORKGROUP + lane, count - 1u);
    elements[turn] = element_at(copy + 1u, place);
  }
  var items: array<u32, TURNS>;
  for (var turn = 0u; turn < TURNS; turn++) {
    let i = turn * WORKGROUP + lane;
    words[i] = select(DIGITS - 1u, digit_of(elements[turn]), i < count) | (i << 8u);  // what fills up a block goes last
  }
  workgroupBarrier();
  for (var half = 0u; half < 8u; half += 4u) {
    take_runs(lane, &items);
    sort_by(half, lane, &items);
  }
  for (var turn = 0u; turn < TURNS; turn++) {
    let i = turn * WORKGROUP + lane;
    items[turn] = words[i];
    let digit = items[turn] & (DIGITS - 1u);
    if (i == 0u || (words[max(i, 1u) - 1u] & (DIGITS - 1u)) != digit) { starts[digit] = i; }
  }
  let digit = line * DIGITS + lane;
  let sums = sums_before(lane, load_totals(digit));
  starts[lane] = sums.x + load_counts(digit * blocks() + block) - starts[lane];
  for (var turn = 0u; turn < TURNS; turn++) { words[turn * WORKGROUP + lane] = elements[turn].x; }
  workgroupBarrier();
  for (var turn = 0u; turn < TURNS; turn++) { elements[turn].x = words[items[turn] >> 8u]; }
  if (WORDS == 2u) {
    workgroupBarrier();
    for (var turn = 0u; turn < TURNS; turn++) { words[turn * WORKGROUP + lane] = elements[turn].y; }
    workgroupBarrier();
    for (var turn = 0u; turn < TURNS; turn++) { elements[turn].y = words[items[turn] >> 8u]; }
  }
  if (!FIRST) {
    workgroupBarrier();
    for (var turn = 0u; turn < TURNS; turn++) {
      let i = turn * WORKGROUP + lane;
      words[i] = load_room(plane_of(copy + 1u, WORDS) + begin + first_of_block + min(i, count - 1u));
    }
    workgroupBarrier();
  }
  let ends = is_last();
  for (var turn = 0u; turn < TURNS; turn++) {
    let i = turn * WORKGROUP + lane;
    if (i >= count) { continue; }
    let source = items[turn] >> 8u;
    var index = first_of_block + source;
    if (!FIRST) { index = words[source]; }
    let place = starts[items[turn] & (DIGITS - 1u)] + i;
    if (ends) {
      store_result(line, place, elements[turn], index);
    } else {
      store_item(copy, begin + place, elements[turn], index);
    }
  }
}
