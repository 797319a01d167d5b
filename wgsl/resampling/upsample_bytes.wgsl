// Bytes times weights in units of 2^-precision, along one axis, rounded as the CPU does.
// x: axis, weights per output, precision, strides of the input along the width and the height
fn sum_bytes(base: u32, table: u32, w: u32, h: u32) -> i32 {
  let along = x(0u) == 0u;
  let entry = table + select(h, w, along) * (x(1u) + 1u);
  let line = base + select(w * x(3u), h * x(4u), along);
  let stride = select(x(4u), x(3u), along);
  let first = load2(entry).x;
  var total = 1i << (x(2u) - 1u);
  for (var k = 0u; k < x(1u); k++) {
    let weight = bitcast<i32>(load2(entry + 1u + k).x);
    if (weight != 0) { total += weight * load1(line + (first + k) * stride); }
  }
  return clamp(total >> x(2u), 0, 255);
}
