// The sum over the outputs that an input is part of.
fn outputs_of(axis: u32, i: u32) -> vec2<i32> {
  let end = i32(word(axis, 1u)) - 1;
  if (word(axis, 3u) != 0u) { return vec2<i32>(i32(i)); }
  let at = f32(i) * fraction(axis, 5u);
  // inputs at the edges stand for what lies outside
  let first = select(i32(floor(at + fraction(axis, 6u))), 0, i == 0u);
  let last = select(i32(ceil(at + fraction(axis, 7u))), end, i32(i) == inputs(axis) - 1);
  return vec2<i32>(clamp(first, 0, end), clamp(last, 0, end));
}

fn share(mode: u32, axis: u32, o: i32, i: u32) -> f32 {
  let t = taps(mode, axis, o);
  if (i32(i) < inside(axis, t.first) || i32(i) > inside(axis, t.last)) { return 0.0; }
  return weight(mode, axis, t, i32(i));
}

fn resample_backward(mode: u32, base: u32, w: u32, h: u32, z: u32) -> f32 {
  let xs = outputs_of(0u, w);
  let ys = outputs_of(1u, h);
  let zs = outputs_of(2u, z);
  var total = 0.0;
  for (var k = zs.x; k <= zs.y; k++) {
    let deep = share(mode, 2u, k, z);
    if (deep == 0.0) { continue; }
    for (var j = ys.x; j <= ys.y; j++) {
      let high = deep * share(mode, 1u, j, h);
      if (high == 0.0) { continue; }
      let row = base + u32(k) * word(2u, 2u) + u32(j) * word(1u, 2u);
      for (var i = xs.x; i <= xs.y; i++) {
        let wide = share(mode, 0u, i, w);
        if (wide != 0.0) { total += high * wide * load1(row + u32(i) * word(0u, 2u)); }
      }
    }
  }
  return total;
}
