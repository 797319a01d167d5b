// Scans the accumulators of each line's blocks in place.
fn run(line: u32) {
  var total = identity();
  for (var task = line * blocks(); task < (line + 1u) * blocks(); task++) {
    total = combine(total, Acc(load_part(task), load_tag(task)));
    store_part(task, total.x);
    store_tag(task, total.y);
  }
}
