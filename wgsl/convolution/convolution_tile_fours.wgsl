// Four neighbours of the result lie side by side in memory, aligned: pixels of a channel, or channels of a pixel.
fn places_of(batch: u32, column: u32) -> u32 {
  if (PIXELS_ARE_ROWS) { return column; }
  return target_of(batch, column).at;
}

fn store_four(batch: u32, row: u32, column: u32, product: vec4<f32>, place: u32) {
  if (column >= columns()) { return; }
  if (PIXELS_ARE_ROWS) {
    let pixel = target_of(batch, row);
    if (!pixel.is_there) { return; }  // phases are of one size, which some do not fill
    let bias = vec4<f32>(bias_of(batch, column), bias_of(batch, column + 1u), bias_of(batch, column + 2u),
                         bias_of(batch, column + 3u));
    store_quad(pixel.at + column, product + bias);
  } else {
    store_quad(place + row * out_channel(), product + vec4<f32>(bias_of(batch, row)));
  }
}
