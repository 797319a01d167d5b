// Where in its plane the largest element of a window is: of equal ones the first, of NaN the last.
fn max_index(base: u32, w: Window, h: Window, d: Window) -> vec2<u32> {
  var best = lowest();
  var row = d.first * i32(inputs(1u)) + h.first;
  var place = row * i32(inputs(0u)) + w.first;
  for (var k = d.first; k < d.end; k += d.step) {
    for (var j = h.first; j < h.end; j += h.step) {
      let begin = base + u32(k) * stride(2u) + u32(j) * stride(1u);
      row = k * i32(inputs(1u)) + j;
      for (var i = w.first; i < w.end; i += w.step) {
        let value = load1(begin + u32(i) * stride(0u));
        if (gt(value, best) || is_nan(value)) {
          best = value;
          place = row * i32(inputs(0u)) + i;
        }
      }
    }
  }
  return vec2<u32>(u32(place), 0u);
}
