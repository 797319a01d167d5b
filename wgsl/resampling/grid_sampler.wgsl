// Samples of an image at the places that a grid names, by a few taps along each axis.
const BILINEAR = 0u;
const NEAREST = 1u;
const BICUBIC = 2u;
const MODE = VARIANT & 3u;
const DEEP = (VARIANT & 4u) != 0u;
const TAPS = select(select(2u, 1u, MODE == NEAREST), 4u, MODE == BICUBIC);
const LAYERS = select(1u, TAPS, DEEP);

// Places are found in the precision of the grid, as on the CPU: a neighbour taken instead is no error of rounding.
fn cut(value: f32) -> f32 {
  if ((VARIANT & 16u) != 0u) { return load_f16(store_f16(value)); }
  if ((VARIANT & 32u) != 0u) { return load_bf16(store_bf16(value)); }
  return value;
}

// a * b + c, in one step for f32.
fn step_of(a: f32, b: f32, c: f32) -> f32 {
  if ((VARIANT & 48u) == 0u) { return fused(a, b, c); }
  return cut(cut(a * b) + c);
}

const BORDER = 1u;
const REFLECTION = 2u;

// The taps along an axis. A place that is not inside counts as zero.
struct Line {
  place: vec4<u32>,
  inside: vec4<bool>,
  weight: vec4<f32>,
  slope: vec4<f32>,  // of the weights, by the place
  rate: f32,         // of the place, by the coordinate
}

struct Point {
  at: f32,
  rate: f32,
}

// In two dimensions and in three the CPU takes different steps.
fn unnormalize(coordinate: f32, size: u32) -> Point {
  let moved = cut(coordinate + 1.0);
  let rate = f32(select(size, size - 1u, corners() != 0u)) / 2.0;
  if (!DEEP) { return Point(step_of(moved, cut(rate), select(-0.5, 0.0, corners() != 0u)), rate); }
  if (corners() != 0u) { return Point(cut(cut(moved / 2.0) * f32(size - 1u)), rate); }
  return Point(cut(cut(cut(moved * f32(size)) - 1.0) / 2.0), rate);
}

fn clip(point: Point, size: u32) -> Point {
  let last = f32(size - 1u);
  if (point.at <= 0.0) { return Point(0.0, 0.0); }
  if (point.at >= last) { return Point(last, 0.0); }
  return point;
}

fn reflect_at(point: Point, low: f32, span: f32) -> Point {
  if (span <= 0.0) { return Point(0.0, 0.0); }
  let away = cut(abs(point.at - low));
  let rest = cut(away - cut(trunc(cut(away / (2.0 * span))) * 2.0 * span));
  let mirrored = rest > span;
  let sign = select(1.0, -1.0, (point.at < low) != mirrored);
  return Point(cut(select(rest, cut(2.0 * span - rest), mirrored) + low), sign * point.rate);
}

fn padded(point: Point, size: u32) -> Point {
  switch (padding()) {
    case BORDER: { return clip(point, size); }
    case REFLECTION: {
      if (corners() != 0u) { return clip(reflect_at(point, 0.0, f32(size - 1u)), size); }
      return clip(reflect_at(point, -0.5, f32(size)), size);
    }
    default: { return point; }
  }
}

fn tap(line: ptr<function, Line>, k: u32, at: f32, size: u32, stride: u32, weight: f32, slope: f32) {
  let inside = at >= 0.0 && at < f32(size);
  (*line).place[k] = select(0u, u32(at) * stride, inside);
  (*line).inside[k] = inside;
  (*line).weight[k] = weight;
  (*line).slope[k] = slope;
}

// The derivative of the cubic kernel by the distance.
fn cubic_slope(t: f32, a: f32) -> f32 {
  if (t <= 1.0) { return (3.0 * (a + 2.0) * t - 2.0 * (a + 3.0)) * t; }
  return (3.0 * a * t - 10.0 * a) * t + 8.0 * a;
}

fn line_at(coordinate: f32, size: u32, stride: u32) -> Line {
  var line = Line(vec4<u32>(), vec4<bool>(), vec4<f32>(), vec4<f32>(), 0.0);
  var point = unnormalize(select(coordinate, -2.0, is_nan_f32(coordinate)), size);
  if (MODE == BICUBIC) {
    let t = cut(point.at - floor(point.at));
    for (var k = 0u; k < 4u; k++) {
      let distance = cut(t + 1.0 - f32(k));
      let at = padded(Point(floor(point.at) - 1.0 + f32(k), 0.0), size).at;
      let slope = select(cubic_slope(distance, -0.75), -cubic_slope(-distance, -0.75), distance < 0.0);
      tap(&line, k, at, size, stride, cubic(abs(distance), -0.75), slope);
    }
  } else {
    point = padded(point, size);
    let before = floor(point.at);
    if (MODE == NEAREST) {
      tap(&line, 0u, round(point.at), size, stride, 1.0, 0.0);
    } else {
      let behind = cut(point.at - before);
      let ahead = select(1.0 - behind, before + 1.0 - point.at, DEEP);
      tap(&line, 0u, before, size, stride, cut(ahead), -1.0);
      tap(&line, 1u, before + 1.0, size, stride, behind, 1.0);
    }
  }
  line.rate = point.rate;
  return line;
}

struct Sample {
  batch: u32,
  w: u32,
  h: u32,
  d: u32,
  wide: Line,
  high: Line,
  deep: Line,
}

fn sample_at(task: u32) -> Sample {
  let w = task % out_w();
  let h = task / out_w() % out_h();
  let d = task / out_w() / out_h() % out_d();
  let batch = task / out_w() / out_h() / out_d();
  let grid = batch * grid_n() + d * grid_d() + h * grid_h() + w * grid_w();
  var deep = Line(vec4<u32>(), vec4<bool>(true), vec4<f32>(1.0), vec4<f32>(), 0.0);
  if (DEEP) { deep = line_at(load_grid(grid + 2u * grid_axis()), in_d(), stride_d()); }
  return Sample(batch, w, h, d, line_at(load_grid(grid), in_w(), stride_w()),
    line_at(load_grid(grid + grid_axis()), in_h(), stride_h()), deep);
}
