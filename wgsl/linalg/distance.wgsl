// Distances of rows: of each of `left` with each of `right`, or, with PAIRS, of the pairs of one set's rows. Forward a task
// is a pair, backward an element of the left rows.
const METRIC = VARIANT & 7u;
const BACKWARD = (VARIANT & 8u) != 0u;
const PAIRS = (VARIANT & 16u) != 0u;
const ZERO = 0u;
const ONE = 1u;
const TWO = 2u;
const INFINITE = 3u;  // 4: any other exponent

fn exponent() -> f32 { return bitcast<f32>(exponent_bits()); }
// For x > 0.
fn power(x: f32, e: f32) -> f32 { return exp_f32(e * log_f32(x)); }

fn add_difference(total: f32, difference: f32) -> f32 {
  let d = abs_f32(difference);
  switch (METRIC) {
    case ZERO: { return total + select(1.0, 0.0, d == 0.0 && !is_nan_f32(d)); }
    case ONE: { return total + d; }
    case TWO: { return total + d * d; }
    case INFINITE: { return max_f32(total, d); }
    default: {
      if (d == 0.0) { return total; }
      return total + power(d, exponent());
    }
  }
}

fn distance_of(total: f32) -> f32 {
  if (METRIC == TWO) { return sqrt(total); }
  if (METRIC <= INFINITE || total == 0.0 || is_nan_f32(total)) { return total; }
  return power(total, 1.0 / exponent());
}

fn slope(difference: f32, distance: f32) -> f32 {
  let d = abs_f32(difference);
  let sign = select(select(0.0, 1.0, difference > 0.0), -1.0, difference < 0.0);
  switch (METRIC) {
    case ZERO: { return 0.0; }
    case ONE: { return sign; }
    case TWO: {
      if (distance == 0.0) { return 0.0; }
      return difference / distance;
    }
    case INFINITE: { return select(0.0, sign, d == distance); }
    default: {
      if (distance == 0.0 || d == 0.0) { return 0.0; }
      // A quotient may be a denormal number, which an adapter may take for zero.
      return sign * exp_f32((exponent() - 1.0) * (log_f32(d) - log_f32(distance)));
    }
  }
}

fn pair(batch: u32, i: u32, j: u32) -> u32 {
  if (!PAIRS) { return (batch * left_rows() + i) * right_rows() + j; }
  let first = min(i, j);
  return left_rows() * first - first * (first + 1u) / 2u + max(i, j) - first - 1u;
}

fn forward(task: u32) {
  let j = task % right_rows();
  let i = task / right_rows() % left_rows();
  let batch = task / right_rows() / left_rows();
  if (PAIRS && j <= i) { return; }
  let a = (batch * left_rows() + i) * width();
  let b = (batch * right_rows() + j) * width();
  var total = 0.0;
  for (var k = 0u; k < width(); k++) { total = add_difference(total, load_left(a + k) - load_right(b + k)); }
  store_result(pair(batch, i, j), distance_of(total));
}

fn backward(task: u32) {
  let k = task % width();
  let i = task / width() % left_rows();
  let batch = task / width() / left_rows();
  let x = load_left(task);
  var total = 0.0;
  for (var j = 0u; j < right_rows(); j++) {
    if (PAIRS && j == i) { continue; }
    let at = pair(batch, i, j);
    let difference = x - load_right((batch * right_rows() + j) * width() + k);
    total += load_gradient(at) * slope(difference, load_distance(at));
  }
  store_result(task, total);
}

fn run(task: u32) {
  if (BACKWARD) { backward(task); } else { forward(task); }
}
