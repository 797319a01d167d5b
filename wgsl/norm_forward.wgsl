// Mean and spread of each row, then (x - mean) * scale * weight + bias. A lane folds four columns of a row, as distances
// from the first element of each: sums of numbers far from zero would lose their digits. What parameters say is asked
// outside of loops, where it is asked once.
struct Columns { first: vec4<f32>, count: vec4<f32>, sum: vec4<f32>, squares: vec4<f32>, }

fn fold_row(start: u32, first: u32, step: u32) -> Columns {
  let end = steps();
  var p = Columns(vec4<f32>(), vec4<f32>(), vec4<f32>(), vec4<f32>());
  if (CENTERED && first < end) { p.first = load_x(start, first); }
  var whole = 0.0;
  var i = first;
  for (; i + 2u * step < end; i += 2u * step) {
    let a = load_x(start, i) - p.first;
    let b = load_x(start, i + step) - p.first;
    whole += 2.0;
    p.sum += a + b;
    p.squares = fma(a, a, fma(b, b, p.squares));
  }
  p.count = vec4<f32>(whole);
  for (; i < end; i += step) {
    let a = select(vec4<f32>(), load_x(start, i) - p.first, inside(i));
    p.count += select(vec4<f32>(), vec4<f32>(1.0), inside(i));
    p.sum += a;
    p.squares = fma(a, a, p.squares);
  }
  return p;
}

fn block(row: u32, end: u32, first: u32, step: u32, leads: bool) {
  let size = f32(length());
  var columns = array<Columns, ROWS>();
  var sums = vec4<f32>();
  for (var r = 0u; r < ROWS; r++) {
    columns[r] = fold_row(start_of_x(min(row + r, end - 1u)), first, step);
    let all = fma(columns[r].first, columns[r].count, columns[r].sum);
    sums[r] = (all.x + all.y) + (all.z + all.w);
  }
  let mean = select(vec4<f32>(), total(sums) / size, vec4<bool>(CENTERED));
  for (var r = 0u; r < ROWS; r++) {
    let p = columns[r];
    let apart = p.first - mean[r];
    var spread = p.squares;
    if (CENTERED) { spread = fma(apart, fma(apart, p.count, 2.0 * p.sum), spread); }
    sums[r] = (spread.x + spread.y) + (spread.z + spread.w);
  }
  let moment = abs(total(sums));  // rounding may leave less than nothing, and max() would lose NaN
  let scale = 1.0 / sqrt(moment / size + epsilon());
  if (leads) {
    for (var r = 0u; r < ROWS; r++) {
      let at = min(row + r, end - 1u);
      store_mean(at, mean[r]);
      store_scale(at, scale[r]);
      store_moment(at, moment[r]);
    }
  }
  if (!WRITES) { return; }
  let last = steps();
  let weights = start_of_weight(0u);
  let biases = start_of_bias(0u);
  var source = array<u32, ROWS>();
  var to = array<u32, ROWS>();
  for (var r = 0u; r < ROWS; r++) {
    source[r] = start_of_x(min(row + r, end - 1u));
    to[r] = start_of_out(min(row + r, end - 1u));
  }
  for (var i = first; i < last; i += step) {
    let weight = load_weight(weights, i);
    let bias = load_bias(biases, i);
    for (var r = 0u; r < ROWS; r++) {
      store_out(to[r], i, fma((load_x(source[r], i) - mean[r]) * scale[r], weight, bias));
    }
  }
}
