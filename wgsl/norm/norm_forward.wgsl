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
  for (; i + step < end; i += step) {
    let a = load_x(start, i) - p.first;
    whole += 1.0;
    p.sum += a;
    p.squares = fma(a, a, p.squares);
  }
  p.count = vec4<f32>(whole);
  if (i < end) {
    let a = select(vec4<f32>(), load_x(start, i) - p.first, inside(i));
    p.count += select(vec4<f32>(), vec4<f32>(1.0), inside(i));
    p.sum += a;
    p.squares = fma(a, a, p.squares);
  }
  return p;
}

// Of so many rows from `row` on. A row behind the end, which a team without one gets, is the last one, and not stored.
fn block(row: u32, turns: u32, end: u32, first: u32, step: u32, leads: bool) {
  let size = f32(length());
  let numbers = vec4<u32>(0u, 1u, 2u, 3u);
  var means = vec4<f32>();
  var scales = vec4<f32>();
  // Not to ROWS: drivers would unroll that, and a loop of few instructions is faster.
  for (var turn = 0u; turn < turns; turn++) {
    let at = min(row + turn, end - 1u);
    let p = fold_row(start_of_x(at), first, step);
    let all = fma(p.first, p.count, p.sum);
    let mean = select(0.0, total((all.x + all.y) + (all.z + all.w)) / size, CENTERED);
    let apart = p.first - mean;
    var spread = p.squares;
    if (CENTERED) { spread = fma(apart, fma(apart, p.count, 2.0 * p.sum), spread); }
    // Rounding may leave less than nothing, and max() would lose NaN.
    let moment = abs(total((spread.x + spread.y) + (spread.z + spread.w)));
    let scale = 1.0 / sqrt(moment / size + epsilon());
    if (leads) {
      store_mean(at, mean);
      store_scale(at, scale);
      store_moment(at, moment);
    }
    // Rows beyond the end repeat the last.
    means = select(means, vec4<f32>(mean), numbers >= vec4<u32>(turn));
    scales = select(scales, vec4<f32>(scale), numbers >= vec4<u32>(turn));
  }
  if (!WRITES || row >= end) { return; }
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
      store_out(to[r], i, fma((load_x(source[r], i) - means[r]) * scales[r], weight, bias));
    }
  }
}
