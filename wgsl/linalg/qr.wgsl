// Columns `first` to `last` of a matrix become R above the diagonal and Householder's vectors below it, whose own first
// element, 1, is not stored: H = 1 - tau v v^T. Signs as LAPACK has them.
fn place(task: u32, i: u32, j: u32) -> u32 { return task * batch() + i * row() + j * column(); }

// Applies H of column j to column c.
fn reflect(task: u32, j: u32, c: u32, tau: f32) {
  let top = load_a(place(task, j, c));
  var dot = top;
  for (var i = j + 1u; i < rows(); i++) { dot = fma(load_a(place(task, i, j)), load_a(place(task, i, c)), dot); }
  let weight = tau * dot;
  store_a(place(task, j, c), top - weight);
  for (var i = j + 1u; i < rows(); i++) {
    store_a(place(task, i, c), fma(-load_a(place(task, i, j)), weight, load_a(place(task, i, c))));
  }
}

fn run(task: u32, lane: u32) {
  for (var j = first(); j < last(); j++) {
    let alpha = load_a(place(task, j, j));
    var largest = 0.0;
    for (var i = j + 1u + lane; i < rows(); i += WORKGROUP) {
      largest = max_f32(largest, abs_f32(load_a(place(task, i, j))));
    }
    let below = workgroup_max(lane, largest);
    let is_done = eq_f32(below, 0.0);  // H is the identity
    let scale = select(max_f32(below, abs_f32(alpha)), 1.0, is_done);
    var squares = 0.0;
    for (var i = j + 1u + lane; i < rows(); i += WORKGROUP) {
      let x = load_a(place(task, i, j)) / scale;
      squares = fma(x, x, squares);
    }
    let top = alpha / scale;
    let length = scale * sqrt(fma(top, top, workgroup_sum(lane, squares)));
    let beta = select(copysign_f32(length, neg_f32(alpha)), alpha, is_done);
    let tau = select((beta - alpha) / beta, 0.0, is_done);
    let factor = 1.0 / (alpha - beta);
    if (!is_done) {
      for (var i = j + 1u + lane; i < rows(); i += WORKGROUP) {
        store_a(place(task, i, j), load_a(place(task, i, j)) * factor);
      }
    }
    if (lane == 0u) {
      store_a(place(task, j, j), beta);
      store_tau(task * tau_batch() + j, tau);
    }
    storageBarrier();
    for (var c = j + 1u + lane; c < last(); c += WORKGROUP) { reflect(task, j, c, tau); }
    storageBarrier();
  }
}
