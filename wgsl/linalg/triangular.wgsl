// Solves a triangular system in place of its right sides, from the first row on, or from the last. Lanes go along the
// rows of one column of the right side, ACROSS its columns, each to its own, or, TILED, each to four of them.
const ACROSS = VARIANT == 1u;
const TILED = VARIANT == 2u;

fn a_place(batch: u32, i: u32, j: u32) -> u32 { return batch * a_batch() + i * a_row() + j * a_column(); }
fn b_place(batch: u32, i: u32, j: u32) -> u32 { return batch * b_batch() + i * b_row() + j * b_column(); }
fn turn(i: u32) -> u32 { return select(i, size() - 1u - i, reversed() != 0u); }

fn diagonal(batch: u32, i: u32) -> f32 {
  if (unit() != 0u) { return 1.0; }
  return load_a(a_place(batch, i, i));
}

fn along(batch: u32, c: u32, lane: u32) {
  for (var step = 0u; step < size(); step++) {
    let k = turn(step);
    let x = load_b(b_place(batch, k, c)) / diagonal(batch, k);
    for (var after = step + 1u + lane; after < size(); after += WORKGROUP) {
      let i = turn(after);
      store_b(b_place(batch, i, c), fma(-load_a(a_place(batch, i, k)), x, load_b(b_place(batch, i, c))));
    }
    storageBarrier();
    if (lane == 0u) { store_b(b_place(batch, k, c), x); }  // nobody reads it any more
  }
}

fn across(batch: u32, c: u32) {
  for (var step = 0u; step < size(); step++) {
    let i = turn(step);
    var rest = load_b(b_place(batch, i, c));
    for (var before = 0u; before < step; before++) {
      let k = turn(before);
      rest = fma(-load_a(a_place(batch, i, k)), load_b(b_place(batch, k, c)), rest);
    }
    store_b(b_place(batch, i, c), rest / diagonal(batch, i));
  }
}

// Columns beyond the last are the last one again, and not stored.
fn load_four(batch: u32, i: u32, c: u32) -> vec4<f32> {
  let last = columns() - 1u;
  return vec4<f32>(load_b(b_place(batch, i, c)), load_b(b_place(batch, i, min(c + 1u, last))),
      load_b(b_place(batch, i, min(c + 2u, last))), load_b(b_place(batch, i, min(c + 3u, last))));
}
fn store_four(batch: u32, i: u32, c: u32, value: vec4<f32>) {
  store_b(b_place(batch, i, c), value.x);
  if (c + 1u < columns()) { store_b(b_place(batch, i, c + 1u), value.y); }
  if (c + 2u < columns()) { store_b(b_place(batch, i, c + 2u), value.z); }
  if (c + 3u < columns()) { store_b(b_place(batch, i, c + 3u), value.w); }
}
fn less(batch: u32, i: u32, k: u32, x: vec4<f32>, rest: vec4<f32>) -> vec4<f32> {
  return fma(vec4<f32>(-load_a(a_place(batch, i, k))), x, rest);
}

fn tiled(batch: u32, c: u32) {
  var step = 0u;
  for (; step + 4u <= size(); step += 4u) {
    let i0 = turn(step);
    let i1 = turn(step + 1u);
    let i2 = turn(step + 2u);
    let i3 = turn(step + 3u);
    var r0 = load_four(batch, i0, c);
    var r1 = load_four(batch, i1, c);
    var r2 = load_four(batch, i2, c);
    var r3 = load_four(batch, i3, c);
    for (var before = 0u; before < step; before++) {
      let k = turn(before);
      let x = load_four(batch, k, c);
      r0 = less(batch, i0, k, x, r0);
      r1 = less(batch, i1, k, x, r1);
      r2 = less(batch, i2, k, x, r2);
      r3 = less(batch, i3, k, x, r3);
    }
    r0 /= diagonal(batch, i0);
    r1 = less(batch, i1, i0, r0, r1) / diagonal(batch, i1);
    r2 = less(batch, i2, i1, r1, less(batch, i2, i0, r0, r2)) / diagonal(batch, i2);
    r3 = less(batch, i3, i2, r2, less(batch, i3, i1, r1, less(batch, i3, i0, r0, r3))) / diagonal(batch, i3);
    store_four(batch, i0, c, r0);
    store_four(batch, i1, c, r1);
    store_four(batch, i2, c, r2);
    store_four(batch, i3, c, r3);
  }
  for (; step < size(); step++) {
    let i = turn(step);
    var rest = load_four(batch, i, c);
    for (var before = 0u; before < step; before++) {
      rest = less(batch, i, turn(before), load_four(batch, turn(before), c), rest);
    }
    store_four(batch, i, c, rest / diagonal(batch, i));
  }
}

fn run(task: u32, lane: u32) {
  if (ACROSS || TILED) {
    let width = select(1u, 4u, TILED);
    let tiles = (columns() + WORKGROUP * width - 1u) / (WORKGROUP * width);
    let c = (task % tiles * WORKGROUP + lane) * width;
    if (c < columns()) {
      if (TILED) { tiled(task / tiles, c); } else { across(task / tiles, c); }
    }
  } else {
    along(task / columns(), task % columns(), lane);
  }
}
