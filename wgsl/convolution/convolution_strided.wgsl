// Rows through their stride. Those beyond the last read what is there; they are not stored.
fn load_rows(at: u32, quad: u32) -> vec4<f32> {
  let by = row_step();
  let first = at + 4u * quad * by;
  return vec4<f32>(load_row(first), load_row(first + by), load_row(first + 2u * by), load_row(first + 3u * by));
}
