// Each row's bin in one more dimension: a row-major index over the dimensions so far, all ones outside the edges.
const LINEAR = (VARIANT & 1u) != 0u;  // equal widths: by division, as the CPU does it, not by the edges
const ROUND_F16 = (VARIANT & 2u) != 0u;
const ROUND_BF16 = (VARIANT & 4u) != 0u;
const NOWHERE = 0xffffffffu;

// The CPU's arithmetic rounds after each step.
fn rounded(x: f32) -> f32 {
  if (ROUND_F16) { return load_f16(store_f16(x)); }
  if (ROUND_BF16) { return load_bf16(store_bf16(x)); }
  return x;
}

fn bin_of(value: f32) -> u32 {
  let first = load_edges(0u);
  let last = load_edges(bins());
  if (!(ge_f32(value, first) && le_f32(value, last))) { return NOWHERE; }
  if (LINEAR) {
    let scaled = rounded(rounded(value - first) * rounded(f32(bins())));
    return min(u32(rounded(scaled / rounded(last - first))), bins() - 1u);
  }
  var low = 0u;
  var high = bins();
  while (low < high) {
    let middle = (low + high) / 2u;
    if (le_f32(load_edges(middle + 1u), value)) { low = middle + 1u; } else { high = middle; }
  }
  return min(low, bins() - 1u);
}

fn run(task: u32) {
  let before = load_index(task);
  if (before == NOWHERE) { return; }
  let bin = bin_of(load_input(task * dimensions() + dimension()));
  store_index(task, select(before * bins() + bin, NOWHERE, bin == NOWHERE));
}
