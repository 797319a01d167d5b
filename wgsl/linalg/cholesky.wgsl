// The Cholesky factor of a matrix in place of its lower triangle, column by column. `info` gets the first column, from
// 1, whose pivot is not positive.
fn place(task: u32, i: u32, j: u32) -> u32 { return task * batch() + i * row() + j * column(); }

fn run(task: u32, lane: u32) {
  for (var j = 0u; j < size(); j++) {
    for (var i = j + lane; i < size(); i += WORKGROUP) {
      var rest = load_a(place(task, i, j));
      for (var k = 0u; k < j; k++) { rest = fma(-load_a(place(task, i, k)), load_a(place(task, j, k)), rest); }
      store_a(place(task, i, j), rest);
    }
    storageBarrier();
    let pivot = load_a(place(task, j, j));
    let root = sqrt(pivot);
    storageBarrier();
    for (var i = j + lane; i < size(); i += WORKGROUP) {
      store_a(place(task, i, j), select(load_a(place(task, i, j)) / root, root, i == j));
    }
    if (lane == 0u) {
      let found = select(load_info(task), 0u, first() + j == 0u);
      store_info(task, select(found, first() + j + 1u, found == 0u && !gt_f32(pivot, 0.0)));
    }
    storageBarrier();
  }
}
