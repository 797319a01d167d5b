// The sum over every output that an input went to. x as in pad.wgsl, with the strides of the output's gradient.

// First and last of the outputs inside (part 0), before (1) and behind (2).
fn images(i: u32, axis: u32, part: u32, mirrors: bool) -> vec2<i32> {
  let before = bitcast<i32>(x(4u * axis));
  let end = i32(x(4u * axis + 1u)) - 1;
  let last_output = i32(x(4u * axis + 3u)) - 1;
  var first = i32(i) + before;
  var last = first;
  if (part == 1u) {
    first = select(0, before - i32(i), mirrors);
    last = select(before - 1, first, mirrors);
    if ((i == 0u) == mirrors) { return vec2<i32>(0, -1); }
  }
  if (part == 2u) {
    first = select(before + end + 1, before + 2 * end - i32(i), mirrors);
    last = select(last_output, first, mirrors);
    if ((i32(i) == end) == mirrors) { return vec2<i32>(0, -1); }
  }
  return vec2<i32>(select(first, 0, first < 0), select(last, last_output, last > last_output));
}

fn sum_images(base: u32, w: u32, h: u32, d: u32, mirrors: bool) -> T {
  var sum = T();
  for (var parts = 0u; parts < 27u; parts++) {
    let xs = images(w, 0u, parts % 3u, mirrors);
    let ys = images(h, 1u, parts / 3u % 3u, mirrors);
    let zs = images(d, 2u, parts / 9u, mirrors);
    for (var oz = zs.x; oz <= zs.y; oz++) {
      for (var oy = ys.x; oy <= ys.y; oy++) {
        for (var ox = xs.x; ox <= xs.y; ox++) {
          sum = add(sum, load1(base + u32(oz) * x(10u) + u32(oy) * x(6u) + u32(ox) * x(2u)));
        }
      }
    }
  }
  return sum;
}
