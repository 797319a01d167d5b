// From a place in a dense plane of the input, as indices of poolings are, to the distance in memory.
fn place_of(index: u32) -> u32 {
  if (stride(0u) == 1u && stride(1u) == inputs(0u) && stride(2u) == inputs(0u) * inputs(1u)) { return index; }
  let row = index / inputs(0u);
  return index % inputs(0u) * stride(0u) + row % inputs(1u) * stride(1u) + row / inputs(1u) * stride(2u);
}
