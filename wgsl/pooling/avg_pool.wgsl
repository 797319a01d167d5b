// x(31u): the divisor, zero for the number of elements.
fn divisor(w: Window, h: Window, d: Window) -> i32 {
  if (x(31u) != 0u) { return i32(x(31u)); }
  return w.count * h.count * d.count;
}

fn average(base: u32, w: Window, h: Window, d: Window) -> T {
  if (w.first >= w.end || h.first >= h.end || d.first >= d.end) { return T(); }
  var total = T();
  for (var k = d.first; k < d.end; k++) {
    for (var j = h.first; j < h.end; j++) {
      let row = base + u32(k) * stride(2u) + u32(j) * stride(1u);
      for (var i = w.first; i < w.end; i++) { total = add(total, load1(row + u32(i) * stride(0u))); }
    }
  }
  return quotient(total, divisor(w, h, d));
}
