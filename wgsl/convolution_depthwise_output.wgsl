// Each line of x is loaded once, and adds to the KH lines of the output that see it.
fn run(task: u32) {
  let p = place_of(task);
  let weight_at = weight_first() + p.channel / multiplier() * weight_group() + p.channel % multiplier() * weight_row();
  var weight: array<T, KH * KW>;
  for (var i = 0u; i < KH * KW; i++) { weight[i] = load_weight(weight_at + i / KW * weight_h() + i % KW * weight_w()); }
  let bias = vec4<T>(load_bias(p.channel));
  // Of the line that sees the present one at h.
  var left: array<vec4<T>, KH>;
  var right: array<vec4<T>, KH>;
  for (var h = 0u; h < KH; h++) {
    left[h] = bias;
    right[h] = bias;
  }
  for (var y = p.top; y < p.end + KH - 1u; y++) {
    let first = p.column - pad_w();
    let a = load_quad(p.x, y - pad_h(), first);
    let b = load_quad(p.x, y - pad_h(), first + 4u);
    let c = load_quad(p.x, y - pad_h(), first + 8u);
    for (var i = 0u; i < KH * KW; i++) {
      left[i / KW] = fma(vec4<T>(weight[i]), shifted(a, b, i % KW), left[i / KW]);
      right[i / KW] = fma(vec4<T>(weight[i]), shifted(b, c, i % KW), right[i / KW]);
    }
    if (y >= p.top + KH - 1u) {
      let at = p.out + (y - (KH - 1u)) * out_line();
      for (var i = 0u; i < 4u; i++) {
        if (p.column + i < out_width()) { store_out(at + i * out_w(), left[KH - 1u][i]); }
        if (p.column + 4u + i < out_width()) { store_out(at + (4u + i) * out_w(), right[KH - 1u][i]); }
      }
    }
    for (var i = 1u; i < KH; i++) {
      left[KH - i] = left[KH - i - 1u];
      right[KH - i] = right[KH - i - 1u];
    }
    left[0] = bias;
    right[0] = bias;
  }
}
