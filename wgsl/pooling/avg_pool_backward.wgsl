// The sum of an input's shares in the gradients of the outputs over it.
fn window(is_adaptive: bool, axis: u32, o: i32) -> Window {
  if (is_adaptive) { return adaptive(axis, u32(o)); }
  return strided(axis, u32(o));
}
fn holds(window: Window, i: u32) -> bool { return window.first <= i32(i) && i32(i) < window.end; }

fn sum_shares(is_adaptive: bool, base: u32, w: u32, h: u32, z: u32) -> T {
  let xs = covering(0u, w);
  let ys = covering(1u, h);
  let zs = covering(2u, z);
  var total = T();
  for (var k = zs.x; k <= zs.y; k++) {
    let deep = window(is_adaptive, 2u, k);
    if (!holds(deep, z)) { continue; }
    for (var j = ys.x; j <= ys.y; j++) {
      let high = window(is_adaptive, 1u, j);
      if (!holds(high, h)) { continue; }
      for (var i = xs.x; i <= xs.y; i++) {
        let wide = window(is_adaptive, 0u, i);
        if (!holds(wide, w)) { continue; }
        let gradient = load1(base + u32(k) * stride(2u) + u32(j) * stride(1u) + u32(i) * stride(0u));
        total = add(total, quotient(gradient, divisor(wide, high, deep)));
      }
    }
  }
  return total;
}
