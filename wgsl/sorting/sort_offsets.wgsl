// needs: sort_digits workgroup_scan
// Turns the counts of a line's digit, block by block, into those of all blocks before, and adds them up.
fn run(task: u32, lane: u32) {
  if (!is_active(shift())) { return; }
  var before = 0u;
  for (var first = 0u; first < blocks(); first += WORKGROUP) {
    let at = task * blocks() + first + lane;
    let has_block = first + lane < blocks();
    var count = 0u;
    if (has_block) { count = load_counts(at); }
    let sums = sums_before(lane, count);
    if (has_block) { store_counts(at, before + sums.x); }
    before += sums.y;
  }
  if (lane == 0u) { store_totals(task, before); }
}
