// The weight's gradient: each task leaves its part of the sums. The KH lines of x that a line sees stay in registers.
fn load_gradients(p: Place, y: u32, first: u32) -> vec4<T> {
  let columns = vec4<u32>(first, first + 1u, first + 2u, first + 3u);
  let at = p.out + y * out_line() + columns * out_w();
  return select(vec4<T>(), vec4<T>(load_gradient(at.x), load_gradient(at.y), load_gradient(at.z), load_gradient(at.w)),
                p.column + columns < vec4<u32>(out_width()));
}

fn run(task: u32) {
  let p = place_of(task);
  var sums: array<vec4<T>, KH * KW>;
  for (var i = 0u; i < KH * KW; i++) { sums[i] = vec4<T>(); }
  var a: array<vec4<T>, KH>;
  var b: array<vec4<T>, KH>;
  var c: array<vec4<T>, KH>;
  for (var h = 0u; h < KH; h++) {
    a[h] = vec4<T>();
    b[h] = vec4<T>();
    c[h] = vec4<T>();
  }
  for (var y = p.top; y < p.end + KH - 1u; y++) {
    for (var h = 1u; h < KH; h++) {
      a[h - 1u] = a[h];
      b[h - 1u] = b[h];
      c[h - 1u] = c[h];
    }
    let first = p.column - pad_w();
    a[KH - 1u] = load_quad(p.x, y - pad_h(), first);
    b[KH - 1u] = load_quad(p.x, y - pad_h(), first + 4u);
    c[KH - 1u] = load_quad(p.x, y - pad_h(), first + 8u);
    if (y >= p.top + KH - 1u) {
      let left = load_gradients(p, y - (KH - 1u), 0u);
      let right = load_gradients(p, y - (KH - 1u), 4u);
      for (var i = 0u; i < KH * KW; i++) {
        let h = i / KW;
        let w = i % KW;
        sums[i] = fma(left, shifted(a[h], b[h], w), fma(right, shifted(b[h], c[h], w), sums[i]));
      }
    }
  }
  let blocks = column_blocks() * line_blocks();
  let at = ((p.image * blocks + task % blocks) * channels() + p.channel) * KH * KW;
  for (var i = 0u; i < KH * KW; i++) { store_sums(at + i, (sums[i].x + sums[i].y) + (sums[i].z + sums[i].w)); }
}
