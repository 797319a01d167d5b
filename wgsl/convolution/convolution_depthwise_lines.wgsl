// Where each channel has a window of its own of any height, KW wide: eight neighbours of a line of the output per task,
// which share the elements of x that they see.
const KW = VARIANT >> 8u;
const STEP = VARIANT & 0xffu;
const SPAN = 8u;
const SEEN = (SPAN - 1u) * STEP + KW;

fn run(task: u32) {
  let column = task % column_blocks() * SPAN;
  let y = task / column_blocks() % line_blocks();
  let plane = task / column_blocks() / line_blocks();
  let image = plane / channels();
  let channel = plane % channels();
  let x_plane = image * x_image() + channel / multiplier() * x_channel();
  let weight_at = weight_first() + channel / multiplier() * weight_group() + channel % multiplier() * weight_row();
  var left = vec4<T>(load_bias(channel));
  var right = left;
  for (var h = 0u; h < kernel_h(); h++) {
    // Lines above the image, and columns left of it, wrap to large numbers.
    let line = y * step_h() + h * dilation_h() - pad_h();
    var x: array<T, SEEN>;
    for (var i = 0u; i < SEEN; i++) {
      let w = column * STEP + i - pad_w();
      let inside = line < x_height() && w < x_width();
      x[i] = select(T(), load_x(select(0u, x_plane + line * x_h() + w * x_w(), inside)), inside);
    }
    for (var w = 0u; w < KW; w++) {
      let weight = vec4<T>(load_weight(weight_at + h * weight_h() + w * weight_w()));
      let next = w + 4u * STEP;
      left = fma(weight, vec4<T>(x[w], x[w + STEP], x[w + 2u * STEP], x[w + 3u * STEP]), left);
      right = fma(weight, vec4<T>(x[next], x[next + STEP], x[next + 2u * STEP], x[next + 3u * STEP]), right);
    }
  }
  let at = image * out_image() + channel * out_channel() + y * out_line();
  store_quad(at, column, left);
  store_quad(at, column + 4u, right);
}
