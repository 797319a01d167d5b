// The weight's gradient as a product, for the tiles of matmul_tile.h: rows are channels of the tensor whose pixels the
// window visits one by one, columns a channel of x and a tap, steps the pixels of all images. A part of the pixels is
// summed by itself.

// A pixel, or a number of pixels to go on by: where it takes x, and its places in x and in the rows' tensor.
struct Pixel { place: vec3<u32>, x_at: u32, row_at: u32, }
struct Walk { pixel: Pixel, slice: Pixel, }

fn pixel_of(number: u32) -> Pixel {
  let size = out_size();
  let row = number / size.z;
  let plane = row / size.y;
  let image = plane / size.x;
  let own = vec3<u32>(plane, row, number) - vec3<u32>(image, plane, row) * size;
  let place = own * step();
  return Pixel(place, image * x_image() + dot(place, x_stride()), image * row_image() + dot(own, row_stride()));
}

// Adds by axes, and carries what leaves an axis to the next one: additions and comparisons alone.
fn sum(a: Pixel, b: Pixel) -> Pixel {
  let size = out_size();
  let ends = size * step();
  var place = a.place + b.place;
  var x_at = a.x_at + b.x_at;
  var row_at = a.row_at + b.row_at;
  if (place.z >= ends.z) {
    place.z -= ends.z;
    place.y += step().y;
    x_at += select(x_image(), step().y * x_stride().y, AXES > 1u) - ends.z * x_stride().z;
    row_at += select(row_image(), row_stride().y, AXES > 1u) - size.z * row_stride().z;
  }
  if (AXES > 1u && place.y >= ends.y) {
    place.y -= ends.y;
    place.x += step().x;
    x_at += select(x_image(), step().x * x_stride().x, AXES > 2u) - ends.y * x_stride().y;
    row_at += select(row_image(), row_stride().x, AXES > 2u) - size.y * row_stride().y;
  }
  if (AXES > 2u && place.x >= ends.x) {
    place.x -= ends.x;
    x_at += x_image() - ends.x * x_stride().x;
    row_at += row_image() - size.x * row_stride().x;
  }
  return Pixel(place, x_at, row_at);
}

fn depth_of(batch: u32) -> u32 { return min(part_lines(), lines() - batch / groups() * part_lines()); }
fn walk_at(batch: u32, step: u32) -> Walk {
  return Walk(pixel_of(batch / groups() * part_lines() + step), pixel_of(SLICE));
}
fn next_walk(walk: Walk) -> Walk { return Walk(sum(walk.pixel, walk.slice), walk.slice); }

// The gradient of the result. Channels beyond the last are the last.
fn grad_line(batch: u32, line: u32) -> u32 {
  let last = rows() - 1u;
  return row_first() + (batch % groups() * rows() + min(line, last - last % ROWS_AT_ONCE)) * row_step();
}
fn grad_within(k: u32) -> Pixel { return pixel_of(k); }
fn grad_step(walk: Walk, within: Pixel) -> u32 { return sum(walk.pixel, within).row_at; }
fn grad_at(line: u32, step: u32) -> u32 { return line + step; }
fn grad_inside(line: u32, step: u32) -> bool { return true; }

// What a tap takes of a channel: it shifts all places alike. Places left of x wrap to large numbers.
struct Window { at: u32, shift: vec3<u32>, }

fn window_line(batch: u32, line: u32) -> Window {
  let size = kernel();
  let taps = size.x * size.y * size.z;
  let column = min(line, columns() - 1u);
  let channel = select(column / taps, column % channels(), TAPS_OUTSIDE);
  let tap = select(column % taps, column / channels(), TAPS_OUTSIDE);
  let row = tap / size.z;
  let plane = row / size.y;
  let shift = vec3<u32>(base() + vec3<i32>(vec3<u32>(plane, row - plane * size.y, tap - row * size.z)) * dilation());
  return Window(x_first() + (batch % groups() * channels() + channel) * x_channel() + dot(shift, x_stride()), shift);
}
fn window_within(k: u32) -> Pixel { return pixel_of(k); }
fn window_step(walk: Walk, within: Pixel) -> Pixel { return sum(walk.pixel, within); }
fn window_at(line: Window, step: Pixel) -> u32 { return line.at + step.x_at; }
fn window_inside(line: Window, step: Pixel) -> bool {
  let place = line.shift + step.place;
  let size = x_size();
  return place.z < size.z && (AXES < 2u || place.y < size.y) && (AXES < 3u || place.x < size.x);
}

fn places_of(batch: u32, column: u32) -> u32 {
  return batch / groups() * out_part() + batch % groups() * rows() * columns() + column;
}
