// Each line of x is loaded once, and adds to the three lines of the output that see it.
fn load_weights(at: u32) -> vec3<T> {
  return vec3<T>(load_weight(at), load_weight(at + weight_w()), load_weight(at + 2u * weight_w()));
}

fn add_tap(sums: Quads, weight: T, x: Quads) -> Quads {
  return Quads(fma(vec4<T>(weight), x.a, sums.a), fma(vec4<T>(weight), x.b, sums.b), fma(vec4<T>(weight), x.c, sums.c),
               fma(vec4<T>(weight), x.d, sums.d));
}
fn add_line(sums: Quads, weight: vec3<T>, x: Seen) -> Quads {
  return add_tap(add_tap(add_tap(sums, weight.x, seen_left(x)), weight.y, Quads(x.a, x.b, x.c, x.d)), weight.z,
                 seen_right(x));
}

fn run(task: u32) {
  let p = place_of(task);
  let weight_at = weight_first() + p.channel / multiplier() * weight_group() + p.channel % multiplier() * weight_row();
  let top = load_weights(weight_at);
  let middle = load_weights(weight_at + weight_h());
  let bottom = load_weights(weight_at + 2u * weight_h());
  let bias = vec4<T>(load_bias(p.channel));
  let start = Quads(bias, bias, bias, bias);
  var above = start;  // the sums of the line above the present one, and of the present one
  var here = start;
  for (var y = p.top; y < p.end + 2u; y++) {
    let x = load_seen(p, y);
    let done = add_line(above, bottom, x);
    if (y >= p.top + 2u) {
      let at = p.out + (y - 2u) * out_line();
      store_quad(at, p.column, done.a);
      store_quad(at, p.column + 4u, done.b);
      store_quad(at, p.column + 8u, done.c);
      store_quad(at, p.column + 12u, done.d);
    }
    above = add_line(here, middle, x);
    here = add_line(start, top, x);
  }
}
