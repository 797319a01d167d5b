// A convolution, or its transpose, as a product of pixels with weights, for the tiles of matmul_tile.h. Steps run over the
// taps of the window and, inside, over channels. Pixel o of a phase takes x at (o * step + phase + base + tap * dilation)
// / gap, where that is whole; see convolution_output.wgsl.

// The taps that a phase meets: `first` and every tap_step()-th behind it, so many along each axis. The first one takes x
// at `shift`, the next one at shift_step() from there.
struct Taps { first: vec3<u32>, count: vec3<u32>, shift: vec3<i32>, }

fn phase_of(batch: u32) -> vec3<u32> {
  let phase = batch / groups();
  let gaps = vec3<u32>(gap());
  return vec3<u32>(phase / (gaps.y * gaps.z), phase / gaps.z % gaps.y, phase % gaps.z);
}

fn taps_of(batch: u32) -> Taps {
  if (!HAS_GAP) { return Taps(vec3<u32>(), kernel(), base()); }
  let to = phase_of(batch) + vec3<u32>(base());
  let divisor = vec3<u32>(gap()) / tap_step();  // the greatest common divisor of gap and dilation
  let first = to / divisor * tap_inverse() % tap_step();
  let met = (to % divisor == vec3<u32>()) & (first < kernel());
  let count = select(vec3<u32>(), (kernel() - first - vec3<u32>(1u)) / tap_step() + vec3<u32>(1u), met);
  return Taps(first, count, (vec3<i32>(to) + vec3<i32>(first) * dilation()) / gap());
}

fn depth_of(batch: u32) -> u32 {
  let count = taps_of(batch).count;
  return count.x * count.y * count.z * channels();
}

// A step: the tap, what it shifts x by, and the channel, to which `Within` adds the step's place in the slice.
struct Tap { number: vec3<u32>, shift: vec3<u32>, channel: u32, }

fn tap_at(taps: Taps, tap: vec3<u32>, channel: u32) -> Tap {
  if (!HAS_GAP) { return Tap(tap, vec3<u32>(taps.shift + vec3<i32>(tap) * dilation()), channel); }
  return Tap(taps.first + tap * tap_step(), vec3<u32>(taps.shift + vec3<i32>(tap) * shift_step()), channel);
}

// `at` is the place of k channels.
struct Within { k: u32, at: u32, }

// Pixels. Those beyond the last are outside of x, as places left of it are, which wrap to large numbers.
struct Pixel { at: u32, place: vec3<u32>, }
struct PixelStep { at: u32, shift: vec3<u32>, }
const OUTSIDE = 0x80000000u;

fn pixels() -> u32 { return select(columns(), rows(), PIXELS_ARE_ROWS); }

fn pixel_line(batch: u32, line: u32) -> Pixel {
  let size = phase_size();
  let row = line / size.z;
  let plane = row / size.y;
  let image = plane / size.x;
  var place = vec3<u32>(plane - image * size.x, row - plane * size.y, line - row * size.z) * step();
  let at = x_first() + image * x_image() + batch % groups() * channels() * x_channel() + dot(place, x_stride());
  if (line >= pixels()) { place.z = OUTSIDE; }
  return Pixel(at, place);
}
fn pixel_within(k: u32) -> Within { return Within(k, k * x_channel()); }
fn pixel_step(walk: Walk, within: Within) -> PixelStep {
  let tap = tap_of(walk, within.k);
  return PixelStep(dot(tap.shift, x_stride()) + tap.channel * x_channel() + select(0u, within.at, WHOLE), tap.shift);
}
fn pixel_at(line: Pixel, step: PixelStep) -> u32 { return line.at + step.at; }
fn pixel_inside(line: Pixel, step: PixelStep) -> bool {
  let place = line.place + step.shift;
  let size = x_size();
  return place.z < size.z && (AXES < 2u || place.y < size.y) && (AXES < 3u || place.x < size.x);
}

// Weights, by the channel that comes out. Those beyond the last are the last.
fn weights() -> u32 { return select(rows(), columns(), PIXELS_ARE_ROWS); }

fn weight_line(batch: u32, line: u32) -> u32 {
  let last = weights() - 1u;
  return row_first() + batch % groups() * row_image() + min(line, last - last % LINES_AT_ONCE) * row_step();
}
fn weight_within(k: u32) -> Within { return Within(k, k * row_channel()); }
fn weight_step(walk: Walk, within: Within) -> u32 {
  let tap = tap_of(walk, within.k);
  return dot(tap.number, row_stride()) + tap.channel * row_channel() + select(0u, within.at, WHOLE);
}
fn weight_at(line: u32, step: u32) -> u32 { return line + step; }
fn weight_inside(line: u32, step: u32) -> bool { return true; }

// Where a pixel goes, without the channel.
struct Target { at: u32, is_there: bool, }

fn target_of(batch: u32, pixel: u32) -> Target {
  let row = pixel / phase_size().z;
  let plane = row / phase_size().y;
  let image = plane / phase_size().x;
  var place = vec3<u32>(plane, row, pixel) - vec3<u32>(image, plane, row) * phase_size();
  var is_there = pixel < pixels();
  if (HAS_GAP) {
    place = place * vec3<u32>(gap()) + phase_of(batch);
    is_there = is_there && all(place < out_size());
  }
  return Target(image * out_image() + dot(place, out_stride()) + batch % groups() * weights() * out_channel(), is_there);
}
fn bias_of(batch: u32, line: u32) -> f32 {
  return load_bias(batch % groups() * weights() + min(line, weights() - 1u));
}
