// needs: sort_digits
// How often each digit is in a block: counts of [line][digit][block].
var<workgroup> counters: array<atomic<u32>, DIGITS>;

fn run(task: u32, lane: u32) {
  if (!is_active(shift())) { return; }
  let line = task / blocks();
  let block = task % blocks();
  let first = block * BLOCK;
  let count = min(BLOCK, length() - first);
  let copy = passes_before() + 1u;
  atomicStore(&counters[lane], 0u);
  workgroupBarrier();
  var digits: array<u32, TURNS>;
  for (var turn = 0u; turn < TURNS; turn++) {
    digits[turn] = digit_of(element_at(copy, line * length() + first + min(turn * WORKGROUP + lane, count - 1u)));
  }
  for (var turn = 0u; turn < TURNS; turn++) {
    if (turn * WORKGROUP + lane < count) { atomicAdd(&counters[digits[turn]], 1u); }
  }
  workgroupBarrier();
  store_counts((line * DIGITS + lane) * blocks() + block, atomicLoad(&counters[lane]));
}
