// Row and column of the i-th element of a triangle, row by row.
// x: rows up to the last with elements, columns, first row with elements, row from which the rows' lengths stop or start
// to change, offset
fn tril_before(row: u32) -> u32 {
  let first = x(2u);
  let full = x(3u);
  if (row <= first) { return 0u; }
  let last = min(row, full);
  let n = last - first;
  let length = u32(i32(first) + 1 + bitcast<i32>(x(4u)));
  return n * length + n * (n - 1u) / 2u + (row - last) * x(1u);
}

fn triu_before(row: u32) -> u32 {
  let full = x(3u);
  if (row <= full) { return row * x(1u); }
  let n = row - full;
  let length = u32(i32(x(1u)) - max(i32(full) + bitcast<i32>(x(4u)), 0));
  return full * x(1u) + n * length - n * (n - 1u) / 2u;
}

fn before(row: u32, upper: bool) -> u32 {
  if (upper) { return triu_before(row); }
  return tril_before(row);
}

fn triangle_index(i: u32, want_column: bool, upper: bool) -> u32 {
  var low = 0u;
  var high = x(0u);
  while (high - low > 1u) {
    let middle = (low + high) / 2u;
    if (before(middle, upper) <= i) { low = middle; } else { high = middle; }
  }
  if (!want_column) { return low; }
  let start = select(0, max(i32(low) + bitcast<i32>(x(4u)), 0), upper);
  return i - before(low, upper) + u32(start);
}
