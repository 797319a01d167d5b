// Solves a symmetric system from its factors L and D (see ldl.wgsl) in place of its right sides. A lane has a column.
fn a_at(batch: u32, i: u32, j: u32) -> f32 { return load_a(batch * a_batch() + i * a_row() + j * a_column()); }
fn b_place(batch: u32, i: u32, c: u32) -> u32 { return batch * b_batch() + i * b_row() + c * b_column(); }

fn swap_rows(batch: u32, c: u32, i: u32, pivot: i32) {
  let other = min(u32(abs(pivot)) - 1u, size() - 1u);
  let value = load_b(b_place(batch, i, c));
  store_b(b_place(batch, i, c), load_b(b_place(batch, other, c)));
  store_b(b_place(batch, other, c), value);
}

// L, then D.
fn forward(batch: u32, c: u32) {
  var k = 0u;
  while (k < size()) {
    let pivot = bitcast<i32>(load_pivots(batch * size() + k));
    let two = pivot < 0 && k + 1u < size();
    let last = select(k, k + 1u, two);
    swap_rows(batch, c, last, pivot);
    let x = load_b(b_place(batch, k, c));
    let y = select(0.0, load_b(b_place(batch, last, c)), two);
    for (var i = last + 1u; i < size(); i++) {
      let rest = fma(-a_at(batch, i, k), x, load_b(b_place(batch, i, c)));
      store_b(b_place(batch, i, c), select(rest, fma(-a_at(batch, i, last), y, rest), two));
    }
    if (two) {
      let off = a_at(batch, last, k);
      let d11 = a_at(batch, k, k) / off;
      let d22 = a_at(batch, last, last) / off;
      let scale = d11 * d22 - 1.0;
      store_b(b_place(batch, k, c), (d22 * (x / off) - y / off) / scale);
      store_b(b_place(batch, last, c), (d11 * (y / off) - x / off) / scale);
    } else {
      store_b(b_place(batch, k, c), x / a_at(batch, k, k));
    }
    k = last + 1u;
  }
}

// The transposed L.
fn backward(batch: u32, c: u32) {
  var left = size();
  while (left > 0u) {
    let last = left - 1u;
    let pivot = bitcast<i32>(load_pivots(batch * size() + last));
    let first = select(last, last - 1u, pivot < 0 && last > 0u);
    for (var k = first; k <= last; k++) {
      var rest = load_b(b_place(batch, k, c));
      for (var i = left; i < size(); i++) { rest = fma(-a_at(batch, i, k), load_b(b_place(batch, i, c)), rest); }
      store_b(b_place(batch, k, c), rest);
    }
    swap_rows(batch, c, last, pivot);
    left = first;
  }
}

fn run(task: u32, lane: u32) {
  let tiles = (columns() + WORKGROUP - 1u) / WORKGROUP;
  let c = task % tiles * WORKGROUP + lane;
  if (c < columns()) {
    forward(task / tiles, c);
    backward(task / tiles, c);
  }
}
