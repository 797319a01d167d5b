// Sums lie dense, in fours.
fn store_four(batch: u32, row: u32, column: u32, product: vec4<f32>, place: u32) {
  if (column < columns()) { store_quad(place + row * columns(), product); }
}
