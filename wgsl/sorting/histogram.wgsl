// Counts, or sums of weights, by bin. An index outside the bins counts nowhere.
const WEIGHTED = VARIANT == 1u;

fn run(task: u32) {
  let bin = load_index(task);
  if (bin >= bins()) { return; }
  if (!WEIGHTED) {
    add_counts(bin, 1u);
    return;
  }
  // WGSL has no atomic sum of floats: tried until no other invocation came between.
  let weight = load_weights(task);
  var done = false;
  while (!done) {
    let old = load_counts(bin);
    done = exchange_counts(bin, old, bitcast<u32>(bitcast<f32>(old) + weight));
  }
}
