// Solves a triangular system in place of its right sides, from the first row on, or from the last. Lanes go ACROSS the
// columns of the right side, each to its own, or along the rows of one.
const ACROSS = VARIANT == 1u;

fn a_place(batch: u32, i: u32, j: u32) -> u32 { return batch * a_batch() + i * a_row() + j * a_column(); }
fn b_place(batch: u32, i: u32, j: u32) -> u32 { return batch * b_batch() + i * b_row() + j * b_column(); }
fn turn(i: u32) -> u32 { return select(i, size() - 1u - i, reversed() != 0u); }

fn divided(batch: u32, i: u32, value: f32) -> f32 {
  if (unit() != 0u) { return value; }
  return value / load_a(a_place(batch, i, i));
}

fn across(batch: u32, c: u32) {
  for (var step = 0u; step < size(); step++) {
    let i = turn(step);
    var rest = load_b(b_place(batch, i, c));
    for (var before = 0u; before < step; before++) {
      let k = turn(before);
      rest = fma(-load_a(a_place(batch, i, k)), load_b(b_place(batch, k, c)), rest);
    }
    store_b(b_place(batch, i, c), divided(batch, i, rest));
  }
}

fn along(batch: u32, c: u32, lane: u32) {
  for (var step = 0u; step < size(); step++) {
    let k = turn(step);
    let x = divided(batch, k, load_b(b_place(batch, k, c)));
    for (var after = step + 1u + lane; after < size(); after += WORKGROUP) {
      let i = turn(after);
      store_b(b_place(batch, i, c), fma(-load_a(a_place(batch, i, k)), x, load_b(b_place(batch, i, c))));
    }
    storageBarrier();
    if (lane == 0u) { store_b(b_place(batch, k, c), x); }  // nobody reads it any more
  }
}

fn run(task: u32, lane: u32) {
  if (ACROSS) {
    let tiles = (columns() + WORKGROUP - 1u) / WORKGROUP;
    let c = task % tiles * WORKGROUP + lane;
    if (c < columns()) { across(task / tiles, c); }
  } else {
    along(task / columns(), task % columns(), lane);
  }
}
