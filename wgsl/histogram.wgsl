// Counts, or sums of weights, by bin. An element outside the bins, or NaN, counts nowhere.
fn run(task: u32) {
  let bin = bin_of(load_input(task));
  if (bin >= bins()) { return; }
  if (VARIANT == 0u) {
    add_counts(bin, 1u);
    return;
  }
  // WGSL has no atomic sum of floats: tried until no other invocation came between.
  let weight = load_weights(task);
  var done = false;
  while (!done) {
    let old = load_counts(bin);
    done = exchange_counts(bin, old, bitcast<u32>(bitcast<f32>(old) + bitcast<f32>(weight)));
  }
}
