// What the kernels share where each channel has a window of its own, which steps by 1: a task takes eight neighbours of
// a plane's lines, down a block of lines. The window is at most 5 wide, so that twelve elements of x are seen.
const KH = VARIANT >> 8u;
const KW = VARIANT & 0xffu;
const SPAN = 8u;

struct Place { column: u32, top: u32, end: u32, image: u32, channel: u32, x: u32, out: u32, }

fn place_of(task: u32) -> Place {
  let top = task / column_blocks() % line_blocks() * block();
  let plane = task / column_blocks() / line_blocks();
  let image = plane / channels();
  let channel = plane % channels();
  let column = task % column_blocks() * SPAN;
  return Place(column, top, min(top + block(), out_h()), image, channel,
               image * x_image() + channel / multiplier() * x_channel(),
               image * out_image() + channel * out_channel() + column * out_w());
}

// Zero where it is outside of x. Places left of the image wrap to large numbers.
fn load_quad(plane: u32, line: u32, column: u32) -> vec4<T> {
  let columns = vec4<u32>(column, column + 1u, column + 2u, column + 3u);
  let inside = (columns < vec4<u32>(x_width())) & vec4<bool>(line < x_height());
  let at = select(vec4<u32>(), plane + line * x_h() + columns * x_w(), inside);
  return select(vec4<T>(), vec4<T>(load_x(at.x), load_x(at.y), load_x(at.z), load_x(at.w)), inside);
}

// Four neighbours of the eight, from the i-th.
fn shifted(a: vec4<T>, b: vec4<T>, i: u32) -> vec4<T> {
  if (i == 0u) { return a; }
  if (i == 1u) { return vec4<T>(a.yzw, b.x); }
  if (i == 2u) { return vec4<T>(a.zw, b.xy); }
  if (i == 3u) { return vec4<T>(a.w, b.xyz); }
  return b;
}
