// Swaps rows 0, 1, ... of a matrix with those that LU's pivots name, in turn, or backwards. A lane has a column.
fn run(task: u32, lane: u32) {
  let tiles = (columns() + WORKGROUP - 1u) / WORKGROUP;
  let c = task % tiles * WORKGROUP + lane;
  if (c >= columns()) { return; }
  let place = task / tiles * batch() + c * column();
  for (var step = 0u; step < count(); step++) {
    let i = select(step, count() - 1u - step, reversed() != 0u);
    let k = min(load_pivots(task / tiles * pivots_batch() + i) - 1u, rows() - 1u);
    let upper = load_b(place + i * row());
    store_b(place + i * row(), load_b(place + k * row()));
    store_b(place + k * row(), upper);
  }
}
