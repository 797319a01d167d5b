// The weight's gradient. Rows are channels of the tensor whose pixels the window visits one by one, columns a channel of
// x and a tap; the sum runs over lines of pixels and, inside, along a line. A part of the lines is summed by itself.
struct Tile { row: u32, column: u32, group: u32, part: u32, }

fn tile_at(task: u32) -> Tile {
  let column = task % column_tiles();
  let row = task / column_tiles() % row_tiles();
  let rest = task / column_tiles() / row_tiles();
  return Tile(row * ROWS, column * 4u * WORKGROUP, rest % groups(), rest / groups());
}

// d, h, w: the tap's shift against the pixel; `at` is the place in x of a pixel at the origin.
struct Columns { d: vec4<u32>, h: vec4<u32>, w: vec4<u32>, at: vec4<u32>, kept: vec4<bool>, }

fn elements_at(tile: Tile, lane: u32) -> vec4<u32> {
  return vec4<u32>(tile.column + lane * 4u) + vec4<u32>(0u, 1u, 2u, 3u);
}

fn columns_at(tile: Tile, lane: u32) -> Columns {
  let element = elements_at(tile, lane);
  let size = kernel();
  let line = element / size.z;
  let plane = line / size.y;
  let to = vec3<u32>(base());
  let by = vec3<u32>(dilation());
  let d = to.x + plane % size.x * by.x;
  let h = to.y + line % size.y * by.y;
  let w = to.z + element % size.z * by.z;
  return Columns(d, h, w, x_first() + (tile.group * channels() + plane / size.x) * x_channel() + d * x_stride().x +
                 h * x_stride().y + w * x_stride().z, element < vec4<u32>(columns()));
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
  let d = walk.d * step().x;
  let h = walk.h * step().y;
  return Source(columns.at + (walk.image * x_image() + d * x_stride().x + h * x_stride().y), columns.w,
                columns.kept & (columns.d + d < vec4<u32>(x_size().x)) & (columns.h + h < vec4<u32>(x_size().y)));
}
fn is_inside(source: Source) -> vec4<bool> { return source.inside & (source.w < vec4<u32>(x_size().z)); }
fn inner_steps() -> u32 { return out_size().z; }
fn next_element(source: Source) -> Source {
  return Source(source.at + step().z * x_stride().z, source.w + step().z, source.inside);
}

fn rows_at(tile: Tile, walk: Walk) -> u32 {
  return row_first() + walk.image * row_image() + (tile.group * rows() + tile.row) * row_step() +
      walk.d * row_stride().x + walk.h * row_stride().y;
}
fn inner_stride() -> u32 { return row_stride().z; }

fn targets(tile: Tile, lane: u32) -> Places {
  let element = elements_at(tile, lane);
  let line = element / kernel().z;
  let plane = line / kernel().y;
  return Places(tile.part * out_part() + plane / kernel().x * out_image() + plane % kernel().x * out_stride().x +
                line % kernel().y * out_stride().y + element % kernel().z * out_stride().z,
                element < vec4<u32>(columns()));
}
