// Rows are channels of the output, columns its pixels; the sum runs over taps and, inside, over channels of x. A pixel o
// takes x at (o * step + base + tap * dilation) / gap, where that is whole. The forward has a gap of 1, the transposed
// convolution a step of 1: pixels of one residue, a phase, meet the same taps, and o counts within the phase.
struct Tile { row: u32, column: u32, group: u32, phase: vec3<u32>, }

fn tile_at(task: u32) -> Tile {
  let column = task % column_tiles();
  let row = task / column_tiles() % row_tiles();
  let rest = task / column_tiles() / row_tiles();
  let phase = rest / groups();
  let gaps = vec3<u32>(gap());
  return Tile(row * ROWS, column * 4u * WORKGROUP, rest % groups(),
              vec3<u32>(phase / (gaps.y * gaps.z), phase / gaps.z % gaps.y, phase % gaps.z));
}

// d, h, w: where the window begins, without its shift; `at` is that place in memory.
struct Columns { d: vec4<u32>, h: vec4<u32>, w: vec4<u32>, at: vec4<u32>, kept: vec4<bool>, }

fn pixels_at(tile: Tile, lane: u32) -> vec4<u32> {
  return vec4<u32>(tile.column + lane * 4u) + vec4<u32>(0u, 1u, 2u, 3u);
}

fn columns_at(tile: Tile, lane: u32) -> Columns {
  let pixel = pixels_at(tile, lane);
  let size = phase_size();
  let line = pixel / size.z;
  let plane = line / size.y;
  let d = plane % size.x * step().x;
  let h = line % size.y * step().y;
  let w = pixel % size.z * step().z;
  return Columns(d, h, w, x_first() + plane / size.x * x_image() + tile.group * channels() * x_channel() +
                 d * x_stride().x + h * x_stride().y + w * x_stride().z, pixel < vec4<u32>(columns()));
}

struct Walk { left: u32, number: u32, tap: vec3<u32>, }

fn first_step(tile: Tile) -> Walk {
  let size = kernel();
  return Walk(size.x * size.y * size.z, 0u, vec3<u32>());
}

fn next_step(walk: Walk) -> Walk {
  let size = kernel();
  var tap = walk.tap + vec3<u32>(0u, 0u, 1u);
  if (tap.z == size.z) { tap = vec3<u32>(tap.x, tap.y + 1u, 0u); }
  if (tap.y == size.y) { tap = vec3<u32>(tap.x + 1u, 0u, 0u); }
  return Walk(walk.left - 1u, walk.number + 1u, tap);
}

fn shift(tile: Tile, walk: Walk) -> vec3<i32> {
  return vec3<i32>(tile.phase) + base() + vec3<i32>(walk.tap) * dilation();
}
// Divisions are slow: without a gap there are none.
fn is_counted(tile: Tile, walk: Walk) -> bool {
  if (!HAS_GAP) { return true; }
  return all(shift(tile, walk) % gap() == vec3<i32>());
}

struct Source { at: vec4<u32>, inside: vec4<bool>, }

// Places left of the image wrap to large numbers.
fn gather(tile: Tile, columns: Columns, walk: Walk) -> Source {
  var by = vec3<u32>(shift(tile, walk));
  if (HAS_GAP) { by = vec3<u32>(shift(tile, walk) / gap()); }
  let size = x_size();
  let inside = columns.kept & (columns.d + by.x < vec4<u32>(size.x)) & (columns.h + by.y < vec4<u32>(size.y)) &
      (columns.w + by.z < vec4<u32>(size.z));
  return Source(select(vec4<u32>(), columns.at + dot(by, x_stride()), inside), inside);
}
fn is_inside(source: Source) -> vec4<bool> { return source.inside; }
fn inner_steps() -> u32 { return channels(); }
fn next_element(source: Source) -> Source { return Source(source.at + x_channel(), source.inside); }

// Packed weights lie as quads of rows, by group, tap and channel; others through their strides.
fn row_quads() -> u32 { return (rows() + 3u) / 4u; }
fn rows_at(tile: Tile, walk: Walk) -> u32 {
  if (PACKED) {
    let taps = kernel().x * kernel().y * kernel().z;
    return ((tile.group * taps + walk.number) * channels()) * row_quads() + tile.row / 4u;
  }
  return row_first() + tile.group * row_image() + tile.row * row_step() + dot(walk.tap, row_stride());
}
fn inner_stride() -> u32 { return select(row_channel(), row_quads(), PACKED); }

fn targets(tile: Tile, lane: u32) -> Places {
  let pixel = pixels_at(tile, lane);
  let line = pixel / phase_size().z;
  let plane = line / phase_size().y;
  let gaps = vec3<u32>(gap());
  let d = plane % phase_size().x * gaps.x + tile.phase.x;
  let h = line % phase_size().y * gaps.y + tile.phase.y;
  let w = pixel % phase_size().z * gaps.z + tile.phase.z;
  let size = out_size();
  return Places(plane / phase_size().x * out_image() + d * out_stride().x + h * out_stride().y + w * out_stride().z,
                (pixel < vec4<u32>(columns())) & (d < vec4<u32>(size.x)) & (h < vec4<u32>(size.y)) &
                (w < vec4<u32>(size.z)));
}
