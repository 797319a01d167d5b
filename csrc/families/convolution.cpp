#include "families/convolution.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "families/convolution_launch.h"
#include "families/convolution_tile.h"
#include "families/matmul.h"

namespace torch_webgpu {
namespace {

// A window of one element is a product of matrices, if the pixels of an image lie at equal distances.
bool is_product(const Window& window, const Weight& weight, const View& out, const View& x) {
  const auto is_line = [](const View& view) {
    return (view.size[1] == 1 || view.stride[1] == view.size[2] * view.stride[2]) &&
           (view.size[0] == 1 || view.stride[0] == view.size[1] * view.stride[1]);
  };
  return window.groups == 1 && product(weight.kernel) == 1 && window.stride == Axes{1, 1, 1} &&
         window.padding == Axes{} && is_line(out) && is_line(x);
}

// Of a convolution that is a product: the images as matrices of channels and pixels, and the weight for each of them.
at::Tensor matrix_of(const View& view) {
  return view.tensor.as_strided({view.outer[0], view.outer[1], product(view.size)},
                                {view.outer_stride[0], view.outer_stride[1], view.stride[2]});
}
at::Tensor matrix_of(const Weight& weight, const at::Tensor& given, const View& out) {
  return given.as_strided({out.outer[0], weight.rows, weight.channels}, {0, weight.row_stride, weight.channel_stride});
}

void multiply(const Weight& weight, const at::Tensor& given, const View& out, const View& x, const at::Tensor& bias,
              const EpilogueCall* call) {
  const at::Tensor expanded = matrix_of(weight, given, out);
  if (call) return matmul_into(*call, expanded, matrix_of(x));
  const at::Tensor target = matrix_of(out);
  matmul("convolution", target, expanded, matrix_of(x),
         bias.defined() ? bias.as_strided(target.sizes(), {0, bias.stride(0), 0}) : at::Tensor(), 1,
         bias.defined() ? 1 : 0);
}

// Whether what eight neighbours see of a line of x, and the line's weights, are few enough for registers.
bool takes_lines(const Window& window, const Weight& weight) {
  constexpr int64_t kWidest = 5, kLongestStep = 2;
  return weight.kernel[2] > 1 && weight.kernel[2] <= kWidest && window.stride[2] <= kLongestStep &&
         window.dilation[2] == 1;
}

// How a kernel in tiles gets its weights: as they lie, copied into the order in which the tiles read them, or that and
// neighbours of a line at once.
enum class Reading : uint8_t { as_given, packed, packed_lines };
constexpr const char* kReadings[] = {"as given", "packed", "packed lines"};

// What can be done, and what pays: weights that kPackFrom or more tiles read are copied.
Reading best_reading(const Window& window, const Weight& weight, const ConvolutionSpec& spec, bool phased) {
  return spec.shared && !phased && takes_lines(window, weight) ? Reading::packed_lines : Reading::packed;
}
constexpr uint32_t kPackFrom = 8;

// Floats in tiles, integers one by one.
void convolve_general(const Window& window, bool transposed, const View& to, const View& x, const at::Tensor& kernel,
                      const Weight& weight, const at::Tensor& bias, const EpilogueCall* call) {
  const bool tiled = to.tensor.scalar_type() == at::kFloat;
  GatheredProduct product_of(tiled ? ConvolutionForm::output : ConvolutionForm::element);
  ConvolutionParams& params = product_of.params;
  Axes phases{1, 1, 1}, size = to.size;
  for (int i = 0; i < 3; ++i) {
    if (transposed) phases[i] = window.stride[i];
    size[i] = ceil_div(to.size[i], phases[i]);
    params.step[i] = static_cast<uint32_t>(transposed ? 1 : window.stride[i]);
    params.base[i] = static_cast<int32_t>(transposed ? window.padding[i] : -window.padding[i]);
    params.dilation[i] = static_cast<int32_t>(transposed ? -window.dilation[i] : window.dilation[i]);
  }
  int64_t tiles = product_of.tiles(weight.rows, to.outer[0] * product(size), window.groups);
  const Reading best = best_reading(window, weight, product_of.spec, product(phases) > 1);
  Reading reading = tiled && params.column_tiles >= kPackFrom ? best : Reading::as_given;
  if (call && call->candidate != kChosen) {
    TORCH_CHECK_VALUE(call->candidate >= 0 && call->candidate <= static_cast<int64_t>(best),
                      "webgpu: there is no kernel ", call->candidate, " for this convolution");
    reading = static_cast<Reading>(call->candidate);
  }
  const bool packed = reading != Reading::as_given;
  if (reading == Reading::packed_lines) {
    const int64_t width = weight.kernel[2], padding = window.padding[2];
    // By elements where the bias is in the same buffer, which is bound once, or where the epilogue takes no fours.
    const bool by_elements =
        (bias.defined() && buffer_of(x.tensor) == buffer_of(bias)) || (call && call->epilogue.text->fours.empty());
    const int64_t before = by_elements ? -1 : transposed ? width - 1 - padding : padding;
    tiles = product_of.line_tiles(to, x, width, params.step[2], before);
  }
  const at::Tensor rows = packed ? pack_weight(kernel, weight, window.groups, at::kFloat) : kernel;
  product_of.spec.packed = packed;
  product_of.spec.has_gap = product(phases) > 1;
  if (call) {
    product_of.epilogue(*call, x.tensor, rows);
  } else {
    product_of.operand(kOut, to.tensor);
    product_of.operand(kX, x.tensor);
    product_of.operand(kRow, rows);
    if (bias.defined()) product_of.operand(kBias, bias);
  }
  copy_axes(params.gap, phases);
  copy_axes(params.phase_size, size);
  copy_axes(params.out_size, to.size);
  copy_axes(params.x_size, x.size);
  copy_axes(params.kernel, weight.kernel);
  copy_axes(params.out_stride, to.stride);
  copy_axes(params.x_stride, x.stride);
  params.channels = static_cast<uint32_t>(weight.channels);
  params.out_image = static_cast<uint32_t>(to.outer_stride[0]);
  params.out_channel = static_cast<uint32_t>(to.outer_stride[1]);
  params.x_image = static_cast<uint32_t>(x.outer_stride[0]);
  params.x_channel = static_cast<uint32_t>(x.outer_stride[1]);
  params.row_image = static_cast<uint32_t>(weight.group_stride);
  params.row_step = static_cast<uint32_t>(weight.row_stride);
  params.row_channel = static_cast<uint32_t>(weight.channel_stride);
  copy_axes(params.row_stride, weight.kernel_stride);
  if (tiled) {
    product_of.run(tiles * product(phases));
  } else {
    product_of.run_elements(to.tensor.numel());
  }
}

// Long sums are split: to keep the adapter busy, and because a sum of many terms in a row loses digits.
int64_t lines_of_part(int64_t lines, int64_t width, int64_t tiles, int64_t weights) {
  constexpr int64_t kSteps = 4096, kPartBytes = 64 << 20;
  const int64_t busy = target().software ? 32 : 1024;
  const int64_t wanted = std::max(ceil_div(busy, tiles), ceil_div(lines * width, kSteps));
  const int64_t most = std::max<int64_t>(1, std::min(lines, kPartBytes / (4 * weights)));
  return ceil_div(lines, std::min(wanted, most));
}

}  // namespace

Window::Window(at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, int64_t groups)
    : groups(groups) {
  std::copy(stride.begin(), stride.end(), this->stride.end() - stride.size());
  std::copy(padding.begin(), padding.end(), this->padding.end() - padding.size());
  std::copy(dilation.begin(), dilation.end(), this->dilation.end() - dilation.size());
}

void convolve(const Window& window, bool transposed, const at::Tensor& out, const at::Tensor& given,
              const at::Tensor& kernel, const at::Tensor& bias) {
  if (out.numel() == 0) return;
  const Weight weight(View(kernel), window.groups, transposed);
  const View x(given), rounded(out);
  if (is_product(window, weight, rounded, x)) return multiply(weight, kernel, rounded, x, bias, nullptr);
  const DepthwiseKind kind = out.is_floating_point() && x.size[0] == 1
                                 ? depthwise_kind(window, transposed, weight.channels, weight.kernel)
                                 : DepthwiseKind::none;
  if (kind == DepthwiseKind::none) {
    const OutputProblem problem{window, transposed, rounded, x, kernel, weight};
    if (const ConvolutionTile* tile = tile_of(problem)) return convolve_tiled(*tile, problem, bias, nullptr);
  }
  const at::Tensor result = words_like(out);
  if (kind != DepthwiseKind::none) {
    convolve_depthwise(window, transposed, kind, View(result), x, kernel, weight, bias);
  } else {
    convolve_general(window, transposed, View(result), x, kernel, weight, bias, nullptr);
  }
  if (!result.is_same(out)) out.copy_(result);
}

void convolve_into(const EpilogueCall& call, const Window& window, bool transposed, at::IntArrayRef sizes,
                   const at::Tensor& given, const at::Tensor& kernel) {
  // A layout without memory: the epilogue counts elements as if they lay dense in memory.
  const at::Tensor layout = at::empty(sizes, at::TensorOptions(at::kMeta).dtype(at::kFloat));
  if (layout.numel() == 0) return;
  const bool is_factor =
      kernel.is_floating_point() || kernel.scalar_type() == at::kChar || kernel.scalar_type() == at::kByte;
  TORCH_CHECK_VALUE(given.is_floating_point() && is_factor, call.epilogue.text->label,
                    ": takes floats, and weights of int8 and uint8");
  const Weight weight(View(kernel), window.groups, transposed);
  const View x(given), out(layout);
  if (is_product(window, weight, out, x)) return multiply(weight, kernel, out, x, {}, &call);
  const OutputProblem problem{window, transposed, out, x, kernel, weight};
  constexpr auto kFirstTile = static_cast<int64_t>(std::size(kReadings));
  const ConvolutionTile* tile =
      call.candidate == kChosen ? tile_of(problem) : tile_of(problem, call.candidate - kFirstTile);
  if (tile) return convolve_tiled(*tile, problem, {}, &call);
  convolve_general(window, transposed, out, x, kernel, weight, {}, &call);
}

Candidates convolution_candidates(const Window& window, bool transposed, at::IntArrayRef sizes, const at::Tensor& given,
                                  const at::Tensor& kernel) {
  const at::Tensor layout = at::empty(sizes, at::TensorOptions(at::kMeta).dtype(at::kFloat));
  const Weight weight(View(kernel), window.groups, transposed);
  const View x(given), out(layout);
  if (is_product(window, weight, out, x)) return matmul_candidates(matrix_of(weight, kernel, out), matrix_of(x));
  GatheredProduct product_of(ConvolutionForm::output);
  product_of.tiles(weight.rows, out.outer[0] * product(out.size), window.groups);
  const bool phased = transposed && product(window.stride) > 1;
  const auto best = static_cast<int64_t>(best_reading(window, weight, product_of.spec, phased));
  Candidates found;
  for (int64_t i = 0; i <= best; ++i) found.emplace_back(i, kReadings[i]);
  const auto tiles = tile_candidates({window, transposed, out, x, kernel, weight}, std::size(kReadings));
  found.insert(found.end(), tiles.begin(), tiles.end());
  return found;
}

void convolve_weight(const Window& window, const at::Tensor& grad_weight, const at::Tensor& grad,
                     const at::Tensor& given) {
  if (grad_weight.numel() == 0) return;
  const View x(given), pixels(grad), shape(grad_weight);
  const int64_t rows = shape.outer[0] / window.groups, channels = shape.outer[1];
  if (x.size[0] == 1 && depthwise_kind(window, false, channels, shape.size) == DepthwiseKind::sliding) {
    return convolve_depthwise_weight(window, grad_weight, pixels, x);
  }
  if (convolve_weight_tiled(window, grad_weight, pixels, x)) return;
  GatheredProduct product_of(ConvolutionForm::weight);
  const int64_t tiles = product_of.tiles(rows, channels * product(shape.size), window.groups);

  const int64_t lines = pixels.outer[0] * pixels.size[0] * pixels.size[1];
  const int64_t part_lines = lines_of_part(lines, pixels.size[2], tiles, grad_weight.numel());
  const int64_t parts = ceil_div(lines, part_lines);
  const bool direct = parts == 1 && grad_weight.scalar_type() == at::kFloat;
  c10::SmallVector<int64_t, 6> sizes{parts}, strides{grad_weight.numel()};
  sizes.append(grad_weight.sizes().begin(), grad_weight.sizes().end());
  strides.append(grad_weight.strides().begin(), grad_weight.strides().end());
  const at::Tensor sums = direct ? grad_weight : empty_tensor(sizes, strides, at::kFloat);

  product_of.operand(kOut, sums);
  product_of.operand(kX, given);
  product_of.operand(kRow, grad);
  ConvolutionParams& params = product_of.params;
  params.channels = static_cast<uint32_t>(channels);
  params.lines = static_cast<uint32_t>(lines);
  params.part_lines = static_cast<uint32_t>(part_lines);
  params.out_part = static_cast<uint32_t>(grad_weight.numel());
  params.out_image = static_cast<uint32_t>(shape.outer_stride[1]);
  params.out_channel = static_cast<uint32_t>(shape.outer_stride[0]);
  params.x_image = static_cast<uint32_t>(x.outer_stride[0]);
  params.x_channel = static_cast<uint32_t>(x.outer_stride[1]);
  params.row_image = static_cast<uint32_t>(pixels.outer_stride[0]);
  params.row_step = static_cast<uint32_t>(pixels.outer_stride[1]);
  copy_axes(params.out_size, pixels.size);
  copy_axes(params.x_size, x.size);
  copy_axes(params.kernel, shape.size);
  copy_axes(params.step, window.stride);
  copy_axes(params.dilation, window.dilation);
  copy_axes(params.out_stride, shape.stride);
  copy_axes(params.x_stride, x.stride);
  copy_axes(params.row_stride, pixels.stride);
  for (int i = 0; i < 3; ++i) params.base[i] = -static_cast<int32_t>(window.padding[i]);
  product_of.run(tiles * parts);
  if (!direct) grad_weight.copy_(parts == 1 ? sums.select(0, 0) : sums.sum(0));
}

}  // namespace torch_webgpu
