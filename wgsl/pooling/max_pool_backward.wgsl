// The sum over the outputs that chose an input.
fn sum_chosen(gradients: u32, indices: u32, w: u32, h: u32, z: u32) -> T {
  let place = (z * inputs(1u) + h) * inputs(0u) + w;
  let xs = covering(0u, w);
  let ys = covering(1u, h);
  let zs = covering(2u, z);
  var total = T();
  for (var k = zs.x; k <= zs.y; k++) {
    for (var j = ys.x; j <= ys.y; j++) {
      for (var i = xs.x; i <= xs.y; i++) {
        let at = u32(k) * stride(2u) + u32(j) * stride(1u) + u32(i) * stride(0u);
        if (load2(indices + at).x == place) { total = add(total, load1(gradients + at)); }
      }
    }
  }
  return total;
}
