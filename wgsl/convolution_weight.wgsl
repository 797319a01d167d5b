// The weight's gradient. Rows are channels of the tensor whose pixels the window visits one by one, columns a channel of
// x and a tap; the sum runs over lines of pixels and, inside, along a line. A part of the lines is summed by itself.
struct Tile { row: u32, column: u32, group: u32, part: u32, }

fn tile_at(task: u32) -> Tile {
  let column = task % column_tiles();
  let row = task / column_tiles() % row_tiles();
  let rest = task / column_tiles() / row_tiles();
  return Tile(row * ROWS, column * 4u * WORKGROUP, rest % groups(), rest / groups());
}

struct Columns { channel: vec4<u32>, d: vec4<u32>, h: vec4<u32>, w: vec4<u32>, kept: vec4<bool>, }

fn columns_at(tile: Tile, lane: u32) -> Columns {
  let column = vec4<u32>(tile.column + lane * 4u) + vec4<u32>(0u, 1u, 2u, 3u);
  let size = kernel();
  let line = column / size.z;
  let plane = line / size.y;
  return Columns(plane / size.x, plane % size.x, line % size.y, column % size.z, column < vec4<u32>(columns()));
}

struct Walk { left: u32, image: u32, d: u32, h: u32, }

fn first_step(tile: Tile) -> Walk {
  let size = out_size();
  let line = tile.part * part_lines();
  return Walk(min(part_lines(), lines() - line), line / size.y / size.x, line / size.y % size.x, line % size.y);
}

fn next_step(walk: Walk) -> Walk {
  let size = out_size();
  var next = Walk(walk.left - 1u, walk.image, walk.d, walk.h + 1u);
  if (next.h == size.y) { next = Walk(next.left, next.image, next.d + 1u, 0u); }
  if (next.d == size.x) { next = Walk(next.left, next.image + 1u, 0u, 0u); }
  return next;
}
fn is_counted(tile: Tile, walk: Walk) -> bool { return true; }

struct Source { at: vec4<u32>, w: vec4<u32>, inside: vec4<bool>, }

fn gather(tile: Tile, columns: Columns, walk: Walk) -> Source {
  let to = vec3<u32>(base());
  let by = vec3<u32>(dilation());
  let d = walk.d * step().x + to.x + columns.d * by.x;
  let h = walk.h * step().y + to.y + columns.h * by.y;
  let w = to.z + columns.w * by.z;
  let at = walk.image * x_image() + (tile.group * channels() + columns.channel) * x_channel() + d * x_stride().x +
      h * x_stride().y + w * x_stride().z;
  return Source(at, w, columns.kept & (d < vec4<u32>(x_size().x)) & (h < vec4<u32>(x_size().y)));
}
fn is_inside(source: Source) -> vec4<bool> { return source.inside & (source.w < vec4<u32>(x_size().z)); }
fn inner_steps() -> u32 { return out_size().z; }
fn next_element(source: Source) -> Source {
  return Source(source.at + step().z * x_stride().z, source.w + step().z, source.inside);
}

fn rows_at(tile: Tile, walk: Walk) -> u32 {
  return walk.image * row_image() + (tile.group * rows() + tile.row) * row_channel() + walk.d * row_stride().x +
      walk.h * row_stride().y;
}
fn inner_stride() -> u32 { return row_stride().z; }
// Rows beyond the last read what is there; they are not stored.
fn load_rows(at: u32, quad: u32) -> vec4<f32> {
  let by = row_channel();
  let first = at + 4u * quad * by;
  return vec4<f32>(load_row(first), load_row(first + by), load_row(first + 2u * by), load_row(first + 3u * by));
}

fn targets(tile: Tile, columns: Columns) -> Places {
  return Places(tile.part * out_part() + columns.channel * out_image() + columns.d * out_stride().x +
                columns.h * out_stride().y + columns.w * out_stride().z, columns.kept);
}
