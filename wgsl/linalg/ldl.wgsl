// The factors L and D of a symmetric matrix in place of its lower triangle, with pivots on the diagonal of one or two
// rows (Bunch and Kaufman), as LAPACK's sytf2 has them. A pivot is the row, from 1, that was swapped in, negative where
// D has a block of two. `info` gets the first column, from 1, that is zero.
var<workgroup> pivot_row: u32;
var<workgroup> pivot_size: u32;

fn place(task: u32, i: u32, j: u32) -> u32 { return task * batch() + i * row() + j * column(); }
// Uses the lower triangle.
fn element(task: u32, i: u32, j: u32) -> f32 { return load_a(place(task, max(i, j), min(i, j))); }

fn choose(task: u32, k: u32) {
  let alpha = 0.6403882;  // (1 + sqrt(17)) / 8
  pivot_row = k;
  pivot_size = 1u;
  let own = abs_f32(element(task, k, k));
  var largest = 0.0;
  var at = k;
  for (var i = k + 1u; i < size(); i++) {
    let value = abs_f32(element(task, i, k));
    if (value > largest) {
      largest = value;
      at = i;
    }
  }
  if (is_nan_f32(own) || (own == 0.0 && largest == 0.0)) {
    if (load_info(task) == 0u) { store_info(task, k + 1u); }
    return;
  }
  if (own >= alpha * largest) { return; }
  var row_largest = 0.0;
  for (var i = k; i < size(); i++) {
    if (i != at) { row_largest = max(row_largest, abs_f32(element(task, at, i))); }
  }
  if (own >= alpha * largest * (largest / row_largest)) { return; }
  pivot_row = at;
  if (abs_f32(element(task, at, at)) < alpha * row_largest) { pivot_size = 2u; }
}

// Rows and columns k and other > k of what is left from `first` on.
fn swap_both(task: u32, lane: u32, first: u32, k: u32, other: u32) {
  for (var i = first + lane; i < size(); i += WORKGROUP) {
    if (i == other) { continue; }
    let here = place(task, max(i, k), min(i, k));
    let there = select(place(task, max(i, other), min(i, other)), place(task, other, other), i == k);
    let value = load_a(here);
    store_a(here, load_a(there));
    store_a(there, value);
  }
}

fn eliminate_one(task: u32, lane: u32, k: u32) {
  let pivot = element(task, k, k);
  let inverse = select(1.0 / pivot, 1.0, eq_f32(pivot, 0.0));  // of a zero the whole column is
  for (var j = k + 1u + lane; j < size(); j += WORKGROUP) {
    let weight = inverse * element(task, j, k);
    for (var i = j; i < size(); i++) {
      store_a(place(task, i, j), fma(-element(task, i, k), weight, element(task, i, j)));
    }
  }
  storageBarrier();
  for (var i = k + 1u + lane; i < size(); i += WORKGROUP) { store_a(place(task, i, k), element(task, i, k) * inverse); }
}

fn eliminate_two(task: u32, lane: u32, k: u32) {
  let off = element(task, k + 1u, k);
  let d11 = element(task, k + 1u, k + 1u) / off;
  let d22 = element(task, k, k) / off;
  let scale = 1.0 / (d11 * d22 - 1.0) / off;
  for (var j = k + 2u + lane; j < size(); j += WORKGROUP) {
    let x = element(task, j, k);
    let y = element(task, j, k + 1u);
    let wx = scale * (d11 * x - y);
    let wy = scale * (d22 * y - x);
    for (var i = j; i < size(); i++) {
      store_a(place(task, i, j),
          fma(-element(task, i, k), wx, fma(-element(task, i, k + 1u), wy, element(task, i, j))));
    }
  }
  storageBarrier();
  for (var j = k + 2u + lane; j < size(); j += WORKGROUP) {
    let x = element(task, j, k);
    let y = element(task, j, k + 1u);
    store_a(place(task, j, k), scale * (d11 * x - y));
    store_a(place(task, j, k + 1u), scale * (d22 * y - x));
  }
}

fn run(task: u32, lane: u32) {
  if (lane == 0u) { store_info(task, 0u); }
  var k = 0u;
  while (k < size()) {
    if (lane == 0u) { choose(task, k); }
    let chosen = workgroupUniformLoad(&pivot_row);
    let two = workgroupUniformLoad(&pivot_size) == 2u;
    let last = select(k, k + 1u, two);
    if (chosen != last) { swap_both(task, lane, k, last, chosen); }
    storageBarrier();
    if (two) { eliminate_two(task, lane, k); } else { eliminate_one(task, lane, k); }
    if (lane == 0u) {
      let pivot = select(chosen + 1u, 0u - (chosen + 1u), two);
      store_pivots(task * size() + k, pivot);
      store_pivots(task * size() + last, pivot);
    }
    storageBarrier();
    k = last + 1u;
  }
}
