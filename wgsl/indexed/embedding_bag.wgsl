// Rows of a table, folded by bags of indices.
// x: indices, bags, rows, strides of the table by row and column, mode, whether samples have weights, row that is skipped
const SUM = 0u;
const MEAN = 1u;
const MAX = 2u;

struct Bag {
  value: T,
  row: u32,
  count: u32,
}

fn fold_bag(bag: u32, column: u32, table: u32, weights: u32, indices: u32, offsets: u32) -> Bag {
  var result = Bag(T(), 0u, 0u);
  let begin = load4(offsets + bag).x;
  var end = x(0u);
  if (bag + 1u < x(1u)) { end = load4(offsets + bag + 1u).x; }
  if (end > x(0u)) { end = x(0u); }
  for (var k = begin; k < end; k++) {
    let row = resolve(load3(indices + k), x(2u), 0u);
    if (row == NONE || row == x(7u)) { continue; }
    var value = load1(table + row * x(3u) + column * x(4u));
    if (x(6u) != 0u) { value = mul(value, load2(weights + k)); }
    if (x(5u) != MAX) {
      result.value = add(result.value, value);
    } else if (result.count == 0u || gt(value, result.value)) {
      result.value = value;
      result.row = row;
    }
    result.count += 1u;
  }
  return result;
}
