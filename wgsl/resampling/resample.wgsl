// needs: transcendental
// Interpolation, an axis at a time: an output is a weighted sum of the inputs around it.
// x, eight words per axis (width, height, depth): inputs, outputs, stride of what is read, whether the axis is kept as
// it is, scale; then the rate, the first and the last of the outputs that an input may be part of.
// x(24u): whether corners are aligned; x(25u): whether weights are rounded to the dtype of the output, as some of the
// CPU's are.
const LINEAR = 0u;
const CUBIC = 1u;
const SMOOTH_LINEAR = 2u;
const SMOOTH_CUBIC = 3u;
const SMOOTH_LANCZOS = 4u;

struct Taps {
  first: i32,
  last: i32,
  at: f32,  // how far behind the first of two, or of the middle two, or the centre among all inputs
  total: f32,  // of the weights before they are divided by it
}

fn word(axis: u32, k: u32) -> u32 { return x(8u * axis + k); }
fn fraction(axis: u32, k: u32) -> f32 { return bitcast<f32>(word(axis, k)); }
fn inputs(axis: u32) -> i32 { return i32(word(axis, 0u)); }
fn kept(mode: u32, axis: u32) -> bool {
  return word(axis, 3u) != 0u || (mode == LINEAR && word(axis, 0u) == word(axis, 1u));
}

fn taps(mode: u32, axis: u32, o: i32) -> Taps {
  if (kept(mode, axis)) { return Taps(o, o, 0.0, 1.0); }
  let scale = fraction(axis, 4u);
  if (mode >= SMOOTH_LINEAR) { return smooth_taps(mode, axis, scale * (f32(o) + 0.5), scale); }
  var source = scale * f32(o);
  if (x(24u) == 0u) { source = fused(scale, f32(o) + 0.5, -0.5); }
  if (mode == LINEAR && source < 0.0) { source = 0.0; }
  let last = inputs(axis) - 1;
  let middle = select(i32(floor(source)), last, i32(floor(source)) > last);
  let behind = clamp(source - f32(middle), 0.0, 1.0);
  if (mode == LINEAR) { return Taps(middle, clamp(middle + 1, 0, last), behind, 1.0); }
  return Taps(middle - 1, middle + 2, behind, 1.0);
}

// Antialiased: where there are fewer outputs than inputs, a filter as wide as an output.
fn reach(mode: u32) -> f32 { return f32(mode) - 1.0; }

fn smooth_taps(mode: u32, axis: u32, centre: f32, scale: f32) -> Taps {
  let wide = select(1.0, scale, scale > 1.0);
  let half = reach(mode) * wide;
  let begin = i32(centre - half + 0.5);
  let first = select(begin, 0, begin < 0);
  let end = i32(centre + half + 0.5);
  let last = select(end, inputs(axis), end > inputs(axis)) - 1;
  var total = 0.0;
  for (var i = first; i <= last; i++) { total += filter_at(mode, (f32(i) - centre + 0.5) / wide); }
  return Taps(first, last, centre, total);
}

fn smooth_weight(mode: u32, axis: u32, t: Taps, i: i32) -> f32 {
  let scale = fraction(axis, 4u);
  let wide = select(1.0, scale, scale > 1.0);
  return filter_at(mode, (f32(i) - t.at + 0.5) / wide) / t.total;
}

fn filter_at(mode: u32, place: f32) -> f32 {
  let t = abs(place);
  if (t >= reach(mode)) { return 0.0; }
  if (mode == SMOOTH_LINEAR) { return 1.0 - t; }
  if (mode == SMOOTH_LANCZOS) { return sinc(t) * sinc(t / 3.0); }
  return cubic(t, -0.5);
}

fn cut(value: f32) -> f32 { return value; }  // of cubic.wgsl: nothing

// WGSL's sine has an absolute error of 2^-11.
fn sinc(t: f32) -> f32 {
  if (t == 0.0) { return 1.0; }
  let angle = 3.14159265 * t;
  return sin_f32(angle) / angle;
}

fn trimmed(weight: f32) -> f32 {
  if (x(25u) == 0u) { return weight; }
  return rounded(weight);
}

// A tap outside stands for the input at the edge, which may so have several.
fn weight(mode: u32, axis: u32, t: Taps, i: i32) -> f32 {
  if (kept(mode, axis) || t.first == t.last) { return 1.0; }
  if (mode >= SMOOTH_LINEAR) { return smooth_weight(mode, axis, t, i); }
  if (mode == LINEAR) { return trimmed(select(trimmed(t.at), 1.0 - trimmed(t.at), i == t.first)); }
  let last = inputs(axis) - 1;
  var total = 0.0;
  for (var k = 0; k < 4; k++) {
    if (clamp(t.first + k, 0, last) == i) { total += trimmed(cubic(abs(t.at + 1.0 - f32(k)), -0.75)); }
  }
  return total;
}

fn resample(mode: u32, base: u32, w: u32, h: u32, z: u32) -> f32 {
  let wide = taps(mode, 0u, i32(w));
  let high = taps(mode, 1u, i32(h));
  let deep = taps(mode, 2u, i32(z));
  var total = 0.0;
  for (var k = inside(2u, deep.first); k <= inside(2u, deep.last); k++) {
    let part = weight(mode, 2u, deep, k);
    for (var j = inside(1u, high.first); j <= inside(1u, high.last); j++) {
      let share = part * weight(mode, 1u, high, j);
      let row = base + u32(k) * word(2u, 2u) + u32(j) * word(1u, 2u);
      for (var i = inside(0u, wide.first); i <= inside(0u, wide.last); i++) {
        total += share * weight(mode, 0u, wide, i) * load1(row + u32(i) * word(0u, 2u));
      }
    }
  }
  return total;
}

fn inside(axis: u32, i: i32) -> i32 { return clamp(i, 0, inputs(axis) - 1); }
