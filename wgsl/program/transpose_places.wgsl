// Where a matrix of a batch of two dimensions begins.
fn batch_place(batch: u32, inner_step: u32, outer_step: u32) -> u32 {
  return (batch % inner()) * inner_step + (batch / inner()) * outer_step;
}
