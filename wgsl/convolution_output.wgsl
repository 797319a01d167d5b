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

struct Columns { image: vec4<u32>, d: vec4<u32>, h: vec4<u32>, w: vec4<u32>, kept: vec4<bool>, }

fn columns_at(tile: Tile, lane: u32) -> Columns {
  let column = vec4<u32>(tile.column + lane * 4u) + vec4<u32>(0u, 1u, 2u, 3u);
  let size = phase_size();
  let line = column / size.z;
  let plane = line / size.y;
  return Columns(plane / size.x, plane % size.x, line % size.y, column % size.z, column < vec4<u32>(columns()));
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
fn is_counted(tile: Tile, walk: Walk) -> bool { return all(shift(tile, walk) % gap() == vec3<i32>()); }

struct Source { at: vec4<u32>, inside: vec4<bool>, }

// Places left of the image wrap to large numbers.
fn gather(tile: Tile, columns: Columns, walk: Walk) -> Source {
  let by = vec3<u32>(shift(tile, walk) / gap());
  let d = columns.d * step().x + by.x;
  let h = columns.h * step().y + by.y;
  let w = columns.w * step().z + by.z;
  let size = x_size();
  let at = columns.image * x_image() + tile.group * channels() * x_channel() + d * x_stride().x + h * x_stride().y +
      w * x_stride().z;
  let inside = columns.kept & (d < vec4<u32>(size.x)) & (h < vec4<u32>(size.y)) & (w < vec4<u32>(size.z));
  return Source(select(vec4<u32>(), at, inside), inside);
}
fn is_inside(source: Source) -> vec4<bool> { return source.inside; }
fn inner_steps() -> u32 { return channels(); }
fn next_element(source: Source) -> Source { return Source(source.at + x_channel(), source.inside); }

// Weights lie as quads of rows, by group, tap and channel.
fn row_quads() -> u32 { return (rows() + 3u) / 4u; }
fn rows_at(tile: Tile, walk: Walk) -> u32 {
  let taps = kernel().x * kernel().y * kernel().z;
  return ((tile.group * taps + walk.number) * channels()) * row_quads() + tile.row / 4u;
}
fn inner_stride() -> u32 { return row_quads(); }
fn load_rows(at: u32, quad: u32) -> vec4<f32> { return load_weight(at + quad); }

fn targets(tile: Tile, columns: Columns) -> Places {
  let gaps = vec3<u32>(gap());
  let d = columns.d * gaps.x + tile.phase.x;
  let h = columns.h * gaps.y + tile.phase.y;
  let w = columns.w * gaps.z + tile.phase.z;
  let size = out_size();
  return Places(columns.image * out_image() + d * out_stride().x + h * out_stride().y + w * out_stride().z,
                columns.kept & (d < vec4<u32>(size.x)) & (h < vec4<u32>(size.y)) & (w < vec4<u32>(size.z)));
}
