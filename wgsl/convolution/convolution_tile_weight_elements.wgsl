// Sums lie dense, in no whole number of fours.
fn store_four(batch: u32, row: u32, column: u32, product: vec4<f32>, place: u32) {
  for (var i = 0u; i < min(4u, columns() - min(column, columns())); i++) {
    store(place + row * columns() + i, product[i]);
  }
}
