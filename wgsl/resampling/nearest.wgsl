// The input nearest to an output, and the sum over the outputs nearest to an input.
// x, eight words per axis (width, height, depth): inputs, outputs, stride of what is read, how the nearest is found,
// scale; then the rate, the first and the last of the outputs that may be near an input. An input i is near outputs
// from i * rate + first to i * rate + last.
const SAME = 0u;
const HALF = 1u;
const FLOOR = 2u;
const CENTRE = 3u;
const ROUNDED = 4u;

fn word(axis: u32, k: u32) -> u32 { return x(8u * axis + k); }
fn fraction(axis: u32, k: u32) -> f32 { return bitcast<f32>(word(axis, k)); }

fn nearest(axis: u32, o: u32) -> u32 {
  let last = word(axis, 0u) - 1u;
  var place = o;
  switch (word(axis, 3u)) {
    case HALF: { place = o / 2u; }
    case FLOOR: { place = u32(f32(o) * fraction(axis, 4u)); }
    case CENTRE: { place = u32((f32(o) + 0.5) * fraction(axis, 4u)); }
    case ROUNDED: { place = u32(clamp(fused(fraction(axis, 4u), f32(o) + 0.5, -0.5), 0.0, f32(last)) + 0.5); }
    default: {}
  }
  return select(place, last, place > last);
}

fn nearest_place(w: u32, h: u32, z: u32) -> u32 {
  return nearest(0u, w) * word(0u, 2u) + nearest(1u, h) * word(1u, 2u) + nearest(2u, z) * word(2u, 2u);
}

fn near_outputs(axis: u32, i: u32) -> vec2<u32> {
  let at = f32(i) * fraction(axis, 5u);
  let first = at + fraction(axis, 6u);
  let last = u32(at + fraction(axis, 7u));
  let end = word(axis, 1u) - 1u;
  // what lies behind the last input is nearest to it
  let open = last > end || i == word(axis, 0u) - 1u;
  return vec2<u32>(select(u32(first), 0u, first < 0.0), select(last, end, open));
}

fn sum_nearest(base: u32, w: u32, h: u32, z: u32) -> T {
  let xs = near_outputs(0u, w);
  let ys = near_outputs(1u, h);
  let zs = near_outputs(2u, z);
  var total = T();
  for (var k = zs.x; k <= zs.y; k++) {
    if (nearest(2u, k) != z) { continue; }
    for (var j = ys.x; j <= ys.y; j++) {
      if (nearest(1u, j) != h) { continue; }
      for (var i = xs.x; i <= xs.y; i++) {
        if (nearest(0u, i) != w) { continue; }
        total = add(total, load1(base + k * word(2u, 2u) + j * word(1u, 2u) + i * word(0u, 2u)));
      }
    }
  }
  return total;
}
