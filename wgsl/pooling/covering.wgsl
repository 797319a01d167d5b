// The first and the last of the outputs whose windows may hold an input.
// x as in window.wgsl, with the rate, the first and the last at the words 7, 8 and 9 of an axis.
fn covering(axis: u32, i: u32) -> vec2<i32> {
  let at = f32(i) * bitcast<f32>(word(axis, 7u));
  let slack = 1e-3 + at * 1e-6;
  let first = at + bitcast<f32>(word(axis, 8u)) - slack;
  let last = at + bitcast<f32>(word(axis, 9u)) + slack;
  let end = i32(outputs(axis)) - 1;
  return vec2<i32>(
    select(i32(first) + 1, 0, first < 0.0), select(select(i32(last), end, i32(last) > end), -1, last < 0.0));
}
