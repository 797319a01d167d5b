// Convolutions and their gradients, as the dispatcher knows them.
#include "families/convolution.h"

#include <ATen/native/ConvUtils.h>
#include <torch/library.h>

#include <algorithm>
#include <string>

#include "families/tensor.h"
#include "ops/native.h"

namespace torch_webgpu {
namespace {

// The memory format of the result and of all gradients, as on the CPU.
at::MemoryFormat format_of(const at::Tensor& input, const at::Tensor& weight) {
  const at::MemoryFormat last = input.dim() == 5 ? at::MemoryFormat::ChannelsLast3d : at::MemoryFormat::ChannelsLast;
  const auto dtype = input.scalar_type();
  const bool wants = input.suggest_memory_format() == last || weight.suggest_memory_format() == last;
  const bool has = input.dim() == 4 || dtype == at::kFloat || dtype == at::kBFloat16;
  return wants && has ? last : at::MemoryFormat::Contiguous;
}

// Integers of fewer than 64 bits have the plain convolution only.
void check_integers(const at::Tensor& input, bool transposed, at::IntArrayRef dilation) {
  const auto dtype = input.scalar_type();
  const char* name = nullptr;
  if (transposed && dtype != at::kLong) {
    name = input.dim() == 5 ? "slow_conv_transpose3d_out_cpu" : "slow_conv_transpose2d_out_cpu";
  } else if (dtype != at::kLong && std::any_of(dilation.begin(), dilation.end(), [](int64_t d) { return d != 1; })) {
    name = "slow_conv_dilated<>";
  } else if (dtype == at::kBool) {
    name = input.dim() == 5 ? "compute_columns3d" : "slow_conv2d_cpu";
  }
  TORCH_CHECK_NOT_IMPLEMENTED(!name, "\"", name, "\" not implemented for '", toString(dtype), "'");
}

void check_dtypes(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias, bool transposed) {
  TORCH_CHECK(input.scalar_type() == weight.scalar_type(), "expected scalar type ", input.scalar_type(), " but found ",
              weight.scalar_type());
  TORCH_CHECK(transposed || !bias.defined() || input.scalar_type() == bias.scalar_type(), "Input type (",
              input.dtype().name(), ") and bias type (", bias.dtype().name(), ") should be the same");
}

void check_output_padding(at::IntArrayRef output_padding, at::IntArrayRef stride, at::IntArrayRef dilation) {
  const auto names = [&](const char* what, at::IntArrayRef values) {
    constexpr const char* kAxes[] = {"depth", "height", "width"};
    std::string text;
    for (size_t i = 0; i < values.size(); ++i) {
      text += std::string(" ") + what + "_" + kAxes[3 - values.size() + i] + ": " + std::to_string(values[i]);
    }
    return text;
  };
  for (size_t i = 0; i < stride.size(); ++i) {
    TORCH_CHECK(output_padding[i] < stride[i] || output_padding[i] < dilation[i],
                "output padding must be smaller than either stride or dilation, but got",
                names("output_padding", output_padding), names("stride", stride), names("dilation", dilation));
  }
}

at::Tensor convolution(const at::Tensor& input, const at::Tensor& weight, const std::optional<at::Tensor>& given,
                       at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
                       at::IntArrayRef output_padding, int64_t groups) {
  const at::Tensor bias = given && given->defined() ? given->contiguous() : at::Tensor();
  check_dtypes(input, weight, bias, transposed);
  if (transposed) check_output_padding(output_padding, stride, dilation);
  const auto size = transposed ? at::native::conv_input_size(input.sizes(), weight.sizes(), padding, output_padding,
                                                             stride, dilation, groups)
                               : at::native::conv_output_size(input.sizes(), weight.sizes(), padding, stride, dilation);
  const at::Tensor out = empty_tensor(size, {}, input.scalar_type(), format_of(input, weight));
  const Window window(stride, padding, dilation, groups);
  if (!at::isFloatingType(input.scalar_type())) check_integers(input, transposed, dilation);
  convolve(window, transposed, out, input, weight, bias);
  return out;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(const at::Tensor& grad, const at::Tensor& input,
                                                                    const at::Tensor& weight, at::IntArrayRef stride,
                                                                    at::IntArrayRef padding, at::IntArrayRef dilation,
                                                                    bool transposed, at::IntArrayRef /*output_padding*/,
                                                                    int64_t groups, std::array<bool, 3> output_mask) {
  TORCH_CHECK_NOT_IMPLEMENTED(at::isFloatingType(grad.scalar_type()), "\"convolution_backward\" not implemented for '",
                              toString(grad.scalar_type()), "'");
  const Window window(stride, padding, dilation, groups);
  const at::MemoryFormat format = format_of(input, weight);
  at::Tensor grad_input, grad_weight, grad_bias;
  if (output_mask[0]) {
    grad_input = empty_tensor(input.sizes(), {}, input.scalar_type(), format);
    convolve(window, !transposed, grad_input, grad, weight, {});
  }
  if (output_mask[1]) {
    grad_weight = empty_tensor(weight.sizes(), {}, weight.scalar_type(), format);
    convolve_weight(window, grad_weight, transposed ? input : grad, transposed ? grad : input);
  }
  if (output_mask[2]) {
    c10::SmallVector<int64_t, 4> dims{0};
    for (int64_t dim = 2; dim < grad.dim(); ++dim) dims.push_back(dim);
    grad_bias = grad.sum(dims);
  }
  return {std::move(grad_input), std::move(grad_weight), std::move(grad_bias)};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  native<&convolution>(library, "convolution_overrideable");
  native<&convolution_backward>(library, "convolution_backward_overrideable");
}

}  // namespace
}  // namespace torch_webgpu
