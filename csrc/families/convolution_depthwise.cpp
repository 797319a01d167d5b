// Convolutions where each channel has a window of its own.
#include <algorithm>

#include "families/convolution.h"
#include "families/launch.h"
#include "families/program.h"

namespace torch_webgpu {
namespace {

constexpr const char* kParams =
    "column_blocks line_blocks block channels multiplier out_image out_channel out_line out_w out_h out_width "
    "x_image x_channel x_h x_w x_height x_width pad_h pad_w weight_first weight_group weight_row weight_h weight_w "
    "kernel_h step_h dilation_h";
constexpr const char *kElements = "convolution_depthwise convolution_depthwise_elements",
                     *kQuads = "convolution_depthwise convolution_depthwise_quads";

constexpr const char* kStoreElements =
    "fn store_quad(at: u32, column: u32, value: vec4<T>) {"
    "  for (var i = 0u; i < 4u; i++) {"
    "    if (column + i < out_width()) { store_out(at + (column + i) * out_w(), value[i]); }"
    "  }"
    "}";
constexpr Program kLines =
    make_program("convolution", "convolution_depthwise_lines", "T:out! T:x T:weight T:bias", kParams, kStoreElements);
constexpr Program kOutput[] = {
    make_program("convolution", "convolution_depthwise_output", "T:out! T:x T:weight T:bias", kParams, kStoreElements,
                 kElements),
    make_program("convolution", "convolution_depthwise_output", "q:out! q:x T:weight T:bias", kParams,
                 "fn store_quad(at: u32, column: u32, value: vec4<T>) {"
                 "  if (column < out_width()) { store_out((at + column) / 4u, value); }"
                 "}",
                 kQuads)};

constexpr Program kWeight[] = {
    make_program("convolution_backward", "convolution_depthwise_weight", "T:sums! T:x T:gradient", kParams,
                 "fn gradient_quad(at: u32, column: u32) -> vec4<T> {"
                 "  var quad = vec4<T>();"
                 "  for (var i = 0u; i < 4u; i++) {"
                 "    if (column + i < out_width()) { quad[i] = load_gradient(at + (column + i) * out_w()); }"
                 "  }"
                 "  return quad;"
                 "}",
                 kElements),
    make_program("convolution_backward", "convolution_depthwise_weight", "T:sums! q:x q:gradient", kParams,
                 "fn gradient_quad(at: u32, column: u32) -> vec4<T> {"
                 "  let kept = column < out_width();"
                 "  return select(vec4<T>(), load_gradient(select(0u, (at + column) / 4u, kept)), kept);"
                 "}",
                 kQuads)};

// A task is a block of columns and some lines of a plane.
struct Blocks {
  Blocks(const View& out, bool slides)
      : planes(out.outer[0] * out.outer[1]), columns(ceil_div(out.size[2], slides ? 16 : 8)) {
    if (!slides) return;
    // Lines that two blocks share are loaded twice: no more blocks than keep the adapter busy.
    constexpr int64_t kLeast = 8;
    const int64_t wanted = std::clamp<int64_t>(parallel_tasks() / (planes * columns), 1, ceil_div(out.size[1], kLeast));
    block = ceil_div(out.size[1], wanted);
  }
  int64_t lines(const View& out) const { return ceil_div(out.size[1], block); }
  Tasks tasks(const View& out) const { return {planes * columns * lines(out), block * 64}; }
  int64_t planes, columns, block = 1;
};

}  // namespace

bool is_aligned(const View& view) {
  return view.tensor.scalar_type() == at::kFloat && view.tensor.storage_offset() % 4 == 0 &&
         view.outer_stride[0] % 4 == 0 && view.outer_stride[1] % 4 == 0 && view.stride[1] % 4 == 0 &&
         view.stride[2] == 1 && view.size[2] % 4 == 0;
}

DepthwiseKind depthwise_kind(const Window& window, bool transposed, int64_t channels, const Axes& kernel) {
  constexpr int64_t kWidest = 9, kLongestStep = 2;  // limits: one line of the window stays in registers
  if (channels != 1 || window.groups == 1 || kernel[0] != 1 || window.padding[0] != 0 || window.stride[0] != 1) {
    return DepthwiseKind::none;
  }
  const bool steps = window.stride[1] != 1 || window.stride[2] != 1;
  if (!steps && kernel == Axes{1, 3, 3} && window.dilation == Axes{1, 1, 1}) return DepthwiseKind::sliding;
  const bool fits = kernel[2] <= kWidest && window.stride[2] <= kLongestStep && window.dilation[2] == 1;
  return fits && !(transposed && steps) ? DepthwiseKind::lines : DepthwiseKind::none;
}

void convolve_depthwise(const Window& window, bool transposed, DepthwiseKind kind, const View& out, const View& x,
                        const at::Tensor& kernel, const Weight& weight, const at::Tensor& bias) {
  const bool slides = kind == DepthwiseKind::sliding;
  const Blocks blocks(out, slides);
  // The transposed window is the turned one.
  Axes padding = window.padding, by = weight.kernel_stride;
  int64_t first = 0;
  for (int i = 1; transposed && i < 3; ++i) {
    padding[i] = window.dilation[i] * (weight.kernel[i] - 1) - padding[i];
    first += (weight.kernel[i] - 1) * by[i];
    by[i] = -by[i];
  }
  // A buffer that other operands are in too is bound once, by elements.
  const bool shared =
      buffer_of(x.tensor) == buffer_of(kernel) || (bias.defined() && buffer_of(x.tensor) == buffer_of(bias));
  const bool quads = padding[2] == 1 && !shared && is_aligned(out) && is_aligned(x);
  run(slides ? kOutput[quads] : kLines, at::kFloat, blocks.tasks(out), {out.tensor, x.tensor, kernel, bias},
      {blocks.columns,
       blocks.lines(out),
       blocks.block,
       out.outer[1],
       weight.rows,
       out.outer_stride[0],
       out.outer_stride[1],
       out.stride[1],
       out.stride[2],
       out.size[1],
       out.size[2],
       x.outer_stride[0],
       x.outer_stride[1],
       x.stride[1],
       x.stride[2],
       x.size[1],
       x.size[2],
       padding[1],
       padding[2],
       first,
       weight.group_stride,
       weight.row_stride,
       by[1],
       by[2],
       weight.kernel[1],
       window.stride[1],
       window.dilation[1]},
      slides ? 0 : static_cast<uint32_t>(weight.kernel[2] << 8 | window.stride[2]));
}

void convolve_depthwise_weight(const Window& window, const at::Tensor& grad_weight, const View& out, const View& x) {
  const Blocks blocks(out, true);
  const View weight(grad_weight);
  const at::Tensor sums =
      empty_tensor({out.outer[0] * blocks.lines(out) * blocks.columns, out.outer[1], weight.size[1], weight.size[2]},
                   {}, at::kFloat);
  const bool quads = window.padding[2] == 1 && is_aligned(out) && is_aligned(x);
  run(kWeight[quads], at::kFloat, blocks.tasks(out), {sums, x.tensor, out.tensor},
      {blocks.columns, blocks.lines(out), blocks.block, out.outer[1], weight.outer[0] / window.groups,
       out.outer_stride[0], out.outer_stride[1], out.stride[1], out.stride[2], out.size[1], out.size[2],
       x.outer_stride[0], x.outer_stride[1], x.stride[1], x.stride[2], x.size[1], x.size[2], window.padding[1],
       window.padding[2]});
  grad_weight.copy_(sums.sum(0).view(grad_weight.sizes()));
}

}  // namespace torch_webgpu
