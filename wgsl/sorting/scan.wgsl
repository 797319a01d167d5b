// Scans blocks of lines, a block per task. A line's elements are `inner` apart; blocks after the first start from the
// block before, whose accumulator scan_parts.wgsl has prepared.
const WHOLE = 0u;  // one block per line
const PARTS = 1u;  // only the blocks' accumulators
const CARRY = 2u;  // all but the accumulators
const BLOCK = 128u;

fn line_place(line: u32) -> u32 { return line / inner() * (length() * inner()) + line % inner(); }

fn run(task: u32) {
  let line = task / blocks();
  let block = task % blocks();
  var i = block * span();
  let end = min(i + span(), length());
  var place = line_place(line) + i * inner();
  var total = identity();
  if (VARIANT == CARRY && block + carried() > 0u) {
    let before = task + carried() - 1u;
    total = Acc(load_part(before), load_tag(before));
  }
  // Rounding errors grow with the block and the number of blocks, not with the line.
  while (i < end) {
    var local = identity();
    let stop = min(i + BLOCK, end);
    for (; i < stop; i++) {
      local = combine(local, map(load_input(place), i));
      if (VARIANT != PARTS) {
        let here = combine(total, local);
        store_output(place, finish(here));
        store_index(place, here.y);
      }
      place += inner();
    }
    total = combine(total, local);
  }
  if (VARIANT == PARTS) {
    store_part(task, total.x);
    store_tag(task, total.y);
  }
}
