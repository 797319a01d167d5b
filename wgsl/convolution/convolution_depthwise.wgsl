// Shared by the kernels of depthwise 3 x 3 windows with stride 1: a task computes sixteen neighbours of a line, down a
// block of lines. Values have names instead of array places: loops over arrays end in memory, not in registers.
const SPAN = 16u;

struct Place { column: u32, top: u32, end: u32, image: u32, channel: u32, x: u32, out: u32, }

fn place_of(task: u32) -> Place {
  let top = task / column_blocks() % line_blocks() * block();
  let plane = task / column_blocks() / line_blocks();
  let image = plane / channels();
  let channel = plane % channels();
  return Place(task % column_blocks() * SPAN, top, min(top + block(), out_h()), image, channel,
               image * x_image() + channel / multiplier() * x_channel(), image * out_image() + channel * out_channel());
}

struct Quads { a: vec4<T>, b: vec4<T>, c: vec4<T>, d: vec4<T>, }

// The elements of a line that sixteen neighbours read: their own and one on either side.
struct Seen { before: T, a: vec4<T>, b: vec4<T>, c: vec4<T>, d: vec4<T>, after: T, }

fn seen_left(s: Seen) -> Quads {
  return Quads(vec4<T>(s.before, s.a.xyz), vec4<T>(s.a.w, s.b.xyz), vec4<T>(s.b.w, s.c.xyz), vec4<T>(s.c.w, s.d.xyz));
}
fn seen_right(s: Seen) -> Quads {
  return Quads(vec4<T>(s.a.yzw, s.b.x), vec4<T>(s.b.yzw, s.c.x), vec4<T>(s.c.yzw, s.d.x), vec4<T>(s.d.yzw, s.after));
}

// Places left of the image, or above, wrap to large numbers.
fn load_seen(p: Place, y: u32) -> Seen {
  let line = y - pad_h();
  let at = p.x + line * x_h();
  let inside = line < x_height();
  let column = p.column + 1u - pad_w();
  return Seen(load_before(at, column, inside), load_quad(at, column, inside), load_quad(at, column + 4u, inside),
              load_quad(at, column + 8u, inside), load_quad(at, column + 12u, inside),
              load_after(at, column + 16u, inside));
}
