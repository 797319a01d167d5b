// Eight neighbours of a line of one channel per task, down a block of lines: each line of x is loaded once and adds to
// the KH lines of the output that see it. One channel of x per channel of the output, steps and dilation of 1.
const KH = VARIANT >> 8u;
const KW = VARIANT & 0xffu;
const SPAN = 8u;

fn run(task: u32) {
  let column = task % column_blocks() * SPAN;
  let top = task / column_blocks() % line_blocks() * block();
  let plane = task / column_blocks() / line_blocks();
  let image = plane / channels();
  let channel = plane % channels();
  let x_plane = image * x_image() + channel / multiplier() * x_channel();
  let out_plane = image * out_image() + channel * out_channel();
  var weight: array<array<T, KW>, KH>;
  for (var h = 0u; h < KH; h++) {
    for (var w = 0u; w < KW; w++) {
      weight[h][w] = load_weight(weight_first() + channel * weight_channel() + h * weight_h() + w * weight_w());
    }
  }
  let bias = load_bias(channel * bias_stride());
  // sums[h] is of the line that sees the present one at h.
  var sums: array<array<T, SPAN>, KH>;
  for (var h = 0u; h < KH; h++) {
    for (var i = 0u; i < SPAN; i++) { sums[h][i] = bias; }
  }
  let end = min(top + block(), out_h()) + KH - 1u;
  for (var y = top; y < end; y++) {
    let line = y - pad_h();
    let at = x_plane + line * x_h();
    var x: array<T, SPAN + KW - 1u>;
    for (var i = 0u; i < SPAN + KW - 1u; i++) {
      let w = column + i - pad_w();
      let inside = line < x_height() && w < x_width();
      x[i] = select(T(), load_x(select(x_plane, at + w * x_w(), inside)), inside);
    }
    for (var h = 0u; h < KH; h++) {
      for (var i = 0u; i < SPAN; i++) {
        for (var w = 0u; w < KW; w++) { sums[h][i] = fma(weight[h][w], x[i + w], sums[h][i]); }
      }
    }
    if (y >= top + KH - 1u) {
      let to = out_plane + (y - (KH - 1u)) * out_line() + column * out_w();
      for (var i = 0u; i < SPAN; i++) {
        if (column + i < out_width()) { store_out(to + i * out_w(), sums[KH - 1u][i]); }
      }
    }
    for (var h = KH - 1u; h > 0u; h--) { sums[h] = sums[h - 1u]; }
    for (var i = 0u; i < SPAN; i++) { sums[0][i] = bias; }
  }
}
