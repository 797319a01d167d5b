// Columns `first` to `last` of the LU factors of a matrix in place, after the columns before them were eliminated from
// these. Rows are swapped in all columns. `info` gets the first column, from 1, whose pivot is zero.
var<workgroup> largest: array<f32, WORKGROUP>;
var<workgroup> largest_row: array<u32, WORKGROUP>;

fn place(task: u32, i: u32, j: u32) -> u32 { return task * batch() + i * row() + j * column(); }

// The first of equal values wins.
fn pivot_row(task: u32, lane: u32, j: u32) -> u32 {
  var best = -1.0;
  var best_row = j;
  for (var i = j + lane; i < rows(); i += WORKGROUP) {
    let value = abs_f32(load_a(place(task, i, j)));
    if (gt_f32(value, best)) {
      best = value;
      best_row = i;
    }
  }
  largest[lane] = best;
  largest_row[lane] = best_row;
  for (var step = WORKGROUP / 2u; step > 0u; step /= 2u) {
    workgroupBarrier();
    if (lane < step) {
      let other = largest[lane + step];
      let other_row = largest_row[lane + step];
      if (other > largest[lane] || (other == largest[lane] && other_row < largest_row[lane])) {
        largest[lane] = other;
        largest_row[lane] = other_row;
      }
    }
  }
  workgroupBarrier();
  return largest_row[0];
}

fn swap_rows(task: u32, lane: u32, i: u32, k: u32) {
  if (i == k) { return; }
  for (var c = lane; c < columns(); c += WORKGROUP) {
    let upper = load_a(place(task, i, c));
    store_a(place(task, i, c), load_a(place(task, k, c)));
    store_a(place(task, k, c), upper);
  }
}

fn run(task: u32, lane: u32) {
  for (var j = first(); j < last(); j++) {
    var chosen = j;
    if (pivoting() != 0u) { chosen = pivot_row(task, lane, j); }
    swap_rows(task, lane, j, chosen);
    storageBarrier();
    let pivot = load_a(place(task, j, j));
    let is_zero = eq_f32(pivot, 0.0);
    if (lane == 0u) {
      store_pivots(task * pivots_batch() + j, chosen + 1u);
      let found = select(load_info(task), 0u, j == 0u);
      store_info(task, select(found, j + 1u, found == 0u && is_zero));
    }
    for (var i = j + 1u + lane; i < rows(); i += WORKGROUP) {
      let value = load_a(place(task, i, j));
      let factor = select(value / pivot, value, is_zero);
      store_a(place(task, i, j), factor);
      for (var c = j + 1u; c < last(); c++) {
        store_a(place(task, i, c), fma(-factor, load_a(place(task, j, c)), load_a(place(task, i, c))));
      }
    }
    storageBarrier();
  }
}
