// The weight's gradient: each task leaves its part of the sums. The lines of x that a line sees stay in registers.
struct Sums { left: vec4<T>, middle: vec4<T>, right: vec4<T>, }

fn add_products(sum: vec4<T>, g: Quads, x: Quads) -> vec4<T> {
  return fma(g.a, x.a, fma(g.b, x.b, fma(g.c, x.c, fma(g.d, x.d, sum))));
}
fn add_line(sums: Sums, g: Quads, x: Seen) -> Sums {
  return Sums(add_products(sums.left, g, seen_left(x)), add_products(sums.middle, g, Quads(x.a, x.b, x.c, x.d)),
              add_products(sums.right, g, seen_right(x)));
}
fn total(v: vec4<T>) -> T { return (v.x + v.y) + (v.z + v.w); }
fn store_line(at: u32, sums: Sums) {
  store_sums(at, total(sums.left));
  store_sums(at + 1u, total(sums.middle));
  store_sums(at + 2u, total(sums.right));
}

fn run(task: u32) {
  let p = place_of(task);
  let nothing = Sums(vec4<T>(), vec4<T>(), vec4<T>());
  var top = nothing;
  var middle = nothing;
  var bottom = nothing;
  var above = load_seen(p, p.top);
  var here = load_seen(p, p.top + 1u);
  for (var y = p.top; y < p.end; y++) {
    let below = load_seen(p, y + 2u);
    let at = p.out + y * out_line();
    let g = Quads(gradient_quad(at, p.column), gradient_quad(at, p.column + 4u), gradient_quad(at, p.column + 8u),
                  gradient_quad(at, p.column + 12u));
    top = add_line(top, g, above);
    middle = add_line(middle, g, here);
    bottom = add_line(bottom, g, below);
    above = here;
    here = below;
  }
  let blocks = column_blocks() * line_blocks();
  let at = ((p.image * blocks + task % blocks) * channels() + p.channel) * 9u;
  store_line(at, top);
  store_line(at + 3u, middle);
  store_line(at + 6u, bottom);
}
