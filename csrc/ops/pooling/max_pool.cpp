// Max pooling of two and three dimensions, with dilation, adaptive and fractional, and their backwards.
#include <ATen/native/AdaptivePooling.h>
#include <ATen/native/FractionalMaxPooling.h>
#include <ATen/native/Pool.h>
#include <ATen/ops/adaptive_max_pool2d_backward_meta.h>
#include <ATen/ops/adaptive_max_pool2d_meta.h>
#include <ATen/ops/adaptive_max_pool3d_backward_meta.h>
#include <ATen/ops/adaptive_max_pool3d_meta.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/fractional_max_pool2d_backward_meta.h>
#include <ATen/ops/fractional_max_pool2d_meta.h>
#include <ATen/ops/fractional_max_pool3d_meta.h>
#include <ATen/ops/full.h>
#include <ATen/ops/max_pool2d_with_indices_backward_meta.h>
#include <ATen/ops/max_pool2d_with_indices_meta.h>

#include "families/pool.h"
#include "ops/native.h"

namespace torch_webgpu {
namespace {

using at::IntArrayRef;
using at::Tensor;

void check_floats(const char* kernel, const Tensor& tensor) {
  check_dtype(kernel, tensor.scalar_type(), {at::kFloat, at::kHalf, at::kBFloat16});
}
void check_numbers(const char* kernel, const Tensor& tensor) {
  check_dtype(kernel, tensor.scalar_type(),
              {at::kFloat, at::kHalf, at::kBFloat16, at::kLong, at::kInt, at::kShort, at::kChar, at::kByte});
}

struct MaxPool2d {
  static void run(const Tensor& output, const Tensor& indices, const Tensor& input, IntArrayRef kernel,
                  IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, bool /*ceil_mode*/) {
    check_numbers("max_pool2d", input);
    max_pool(Windows::strided(2, kernel, stride, padding, dilation), 2, input, output, indices);
  }
};

struct MaxPool2dBackward {
  static void run(const Tensor& grad_input, const Tensor& grad_output, const Tensor& /*input*/, IntArrayRef kernel,
                  IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, bool /*ceil_mode*/,
                  const Tensor& indices) {
    check_floats("max_pool2d_backward", grad_output);
    max_pool_backward(Windows::strided(2, kernel, stride, padding, dilation), 2, grad_output, indices, grad_input);
  }
};

// PyTorch's checks of max_pool3d, which is not a structured op.
Windows check_max_pool3d(IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
                         const Tensor& input) {
  TORCH_CHECK(kernel.size() == 1 || kernel.size() == 3,
              "max_pool3d: kernel_size must either be a single int, or a tuple of three ints");
  TORCH_CHECK(stride.empty() || stride.size() == 1 || stride.size() == 3,
              "max_pool3d: stride must either be omitted, a single int, or a tuple of three ints");
  TORCH_CHECK(padding.size() == 1 || padding.size() == 3,
              "max_pool3d: padding must either be a single int, or a tuple of three ints");
  TORCH_CHECK(dilation.size() == 1 || dilation.size() == 3,
              "max_pool3d: dilation must be either a single int, or a tuple of three ints");
  if (input.dim() == 5 && input.suggest_memory_format() == at::MemoryFormat::ChannelsLast3d) {
    TORCH_CHECK(input.dim() == 5, "non-empty 5D (batch mode) tensor expected for input with channels_last_3d layout");
  } else {
    TORCH_CHECK(input.dim() == 4 || input.dim() == 5, "non-empty 4D or 5D (batch mode) tensor expected for input");
  }
  return Windows::strided(3, kernel, stride, padding, dilation);
}

std::tuple<Tensor&, Tensor&> max_pool3d_out(const Tensor& input, IntArrayRef kernel, IntArrayRef stride,
                                            IntArrayRef padding, IntArrayRef dilation, bool ceil_mode, Tensor& output,
                                            Tensor& indices) {
  const Windows windows = check_max_pool3d(kernel, stride, padding, dilation, input);
  const auto& [k, s, p, d] = std::tie(windows.kernel, windows.step, windows.padding, windows.dilation);
  const auto size = [&](int64_t axis) {
    return at::native::pooling_output_shape<int64_t>(input.size(-1 - axis), k[axis], p[axis], s[axis], d[axis],
                                                     ceil_mode);
  };
  const int64_t depth = size(2), height = size(1), width = size(0);
  at::native::pool3d_shape_check(input, input.size(-4), k[2], k[1], k[0], s[2], s[1], s[0], p[2], p[1], p[0], d[2],
                                 d[1], d[0], input.size(-3), input.size(-2), input.size(-1), depth, height, width,
                                 "max_pool3d_with_indices()");
  auto sizes = input.sizes().vec();
  std::copy_n(std::array{depth, height, width}.begin(), 3, sizes.end() - 3);
  const auto format = input.dim() == 5 ? input.suggest_memory_format() : at::MemoryFormat::Contiguous;
  output.resize_(sizes, format);
  indices.resize_(sizes, format);
  check_numbers("max_pool3d", input);
  max_pool(windows, 3, input, output, indices);
  return {output, indices};
}

std::tuple<Tensor, Tensor> max_pool3d(const Tensor& input, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
                                      IntArrayRef dilation, bool ceil_mode) {
  Tensor output = empty_tensor({0}, {}, input.scalar_type()), indices = empty_tensor({0}, {}, at::kLong);
  max_pool3d_out(input, kernel, stride, padding, dilation, ceil_mode, output, indices);
  return {output, indices};
}

Tensor& max_pool3d_backward_out(const Tensor& grad_output, const Tensor& input, IntArrayRef kernel, IntArrayRef stride,
                                IntArrayRef padding, IntArrayRef dilation, bool /*ceil_mode*/, const Tensor& indices,
                                Tensor& grad_input) {
  const Windows windows = check_max_pool3d(kernel, stride, padding, dilation, input);
  const auto& [k, s, p, d] = std::tie(windows.kernel, windows.step, windows.padding, windows.dilation);
  at::native::max_pool3d_backward_shape_check(
      input, grad_output, indices, input.size(-4), k[2], k[1], k[0], s[2], s[1], s[0], p[2], p[1], p[0], d[2], d[1],
      d[0], input.size(-3), input.size(-2), input.size(-1), grad_output.size(-3), grad_output.size(-2),
      grad_output.size(-1), "max_pool3d_with_indices_backward_out_cpu_template()");
  grad_input.resize_(input.sizes(), input.dim() == 5 ? input.suggest_memory_format() : at::MemoryFormat::Contiguous);
  check_floats("max_pool3d_backward", grad_output);
  max_pool_backward(windows, 3, grad_output, indices, grad_input);
  return grad_input;
}

Tensor max_pool3d_backward(const Tensor& grad_output, const Tensor& input, IntArrayRef kernel, IntArrayRef stride,
                           IntArrayRef padding, IntArrayRef dilation, bool ceil_mode, const Tensor& indices) {
  Tensor grad_input = empty_tensor({0}, {}, input.scalar_type());
  return max_pool3d_backward_out(grad_output, input, kernel, stride, padding, dilation, ceil_mode, indices, grad_input);
}

template <int64_t spatial>
struct AdaptiveMaxPool {
  static void run(const Tensor& output, const Tensor& indices, const Tensor& input, IntArrayRef /*size*/) {
    check_floats(spatial == 2 ? "adaptive_max_pool2d" : "adaptive_max_pool3d_cpu", input);
    max_pool(Windows::adaptive(), spatial, input, output, indices);
  }
};

template <int64_t spatial>
struct AdaptiveMaxPoolBackward {
  static void run(const Tensor& grad_input, const Tensor& grad_output, const Tensor& /*input*/, const Tensor& indices) {
    check_floats(spatial == 2 ? "adaptive_max_pool2d_backward" : "adaptive_max_pool3d_backward", grad_output);
    max_pool_backward(Windows::adaptive(), spatial, grad_output, indices, grad_input);
  }
};

Windows fractional(int64_t spatial, IntArrayRef kernel) {
  Windows windows = Windows::strided(spatial, kernel, {}, {0});
  windows.kind = Windows::Kind::listed;
  return windows;
}

// Where the windows of each plane begin. Every step is rounded to the samples' dtype, as on the CPU.
Tensor fractional_starts(const Windows& windows, int64_t spatial, const Tensor& input, const Tensor& output,
                         const Tensor& samples) {
  std::vector<Tensor> axes;
  for (int64_t axis = 0; axis < 3; ++axis) {
    const int64_t room = axis < spatial ? input.size(-1 - axis) - windows.kernel[axis] : 0;
    const int64_t count = axis < spatial ? output.size(-1 - axis) : 1;
    // With two dimensions the first sample is the width's, with three it is the depth's.
    const Tensor sample = samples.select(2, axis >= spatial ? 0 : spatial == 2 ? axis : 2 - axis).unsqueeze(-1);
    Tensor starts = at::empty({samples.size(0), samples.size(1), count}, samples.options().dtype(at::kInt));
    starts.narrow(-1, count - 1, 1).fill_(room);
    if (count > 1) {
      const Tensor alpha = at::full({}, room, samples.options()).div(at::full({}, count - 1, samples.options()));
      const Tensor steps = at::arange(count - 1, samples.options()).add(sample).mul(alpha).to(at::kInt);
      starts.narrow(-1, 0, count - 1).copy_(steps.sub(sample.mul(alpha).to(at::kInt)));
    }
    axes.push_back(std::move(starts));
  }
  return at::cat(axes, -1).unsqueeze(-1).unsqueeze(-1);
}

template <int64_t spatial>
struct FractionalMaxPool {
  static void run(const Tensor& output, const Tensor& indices, const Tensor& input, IntArrayRef kernel,
                  IntArrayRef /*size*/, const Tensor& samples) {
    at::native::fractional_max_pool_check_shape<spatial>(input, samples);
    if (output.numel() == 0) return;
    check_floats(spatial == 2 ? "fractional_max_pool2d_out_frame" : "fractional_max_pool3d_out_frame", input);
    const Windows windows = fractional(spatial, kernel);
    max_pool(windows, spatial, input, output, indices, fractional_starts(windows, spatial, input, output, samples));
  }
};

struct FractionalMaxPool2dBackward {
  static void run(const Tensor& grad_input, const Tensor& grad_output, const Tensor& /*input*/, IntArrayRef kernel,
                  IntArrayRef /*size*/, const Tensor& indices) {
    check_floats("fractional_max_pool2d_backward_out_frame", grad_output);
    max_pool_backward(fractional(2, kernel), 2, grad_output, indices, grad_input);
  }
};

Tensor& fractional_max_pool3d_backward_out(const Tensor& grad_output, const Tensor& input, IntArrayRef kernel,
                                           IntArrayRef size, const Tensor& indices, Tensor& grad_input) {
  const char* const names[] = {"time", "height", "width"};
  for (int64_t i = 0; i < 3; ++i) {
    TORCH_CHECK(size[i] == grad_output.size(i - 3), "fractional_max_pool3d_backward_out(): gradOutput ", names[i],
                " unexpected");
  }
  grad_input.resize_as_(input);
  check_floats("fractional_max_pool3d_backward_out_frame", grad_output);
  max_pool_backward(fractional(3, kernel), 3, grad_output, indices, grad_input);
  return grad_input;
}

Tensor fractional_max_pool3d_backward(const Tensor& grad_output, const Tensor& input, IntArrayRef kernel,
                                      IntArrayRef size, const Tensor& indices) {
  Tensor grad_input = empty_tensor({0}, {}, input.scalar_type());
  return fractional_max_pool3d_backward_out(grad_output, input, kernel, size, indices, grad_input);
}

#define POOL(name, overload, apply)                                                    \
  native<&TwoOutputs<at::meta::structured_##name, apply>::functional>(library, #name); \
  native<&TwoOutputs<at::meta::structured_##name, apply>::out>(library, #name "." overload)
#define BACKWARD(name, apply)                                                         \
  native<&OneOutput<at::meta::structured_##name, apply>::functional>(library, #name); \
  native<&OneOutput<at::meta::structured_##name, apply>::out>(library, #name ".grad_input")

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  POOL(max_pool2d_with_indices, "out", MaxPool2d);
  POOL(adaptive_max_pool2d, "out", AdaptiveMaxPool<2>);
  POOL(adaptive_max_pool3d, "out", AdaptiveMaxPool<3>);
  POOL(fractional_max_pool2d, "output", FractionalMaxPool<2>);
  POOL(fractional_max_pool3d, "output", FractionalMaxPool<3>);
  BACKWARD(max_pool2d_with_indices_backward, MaxPool2dBackward);
  BACKWARD(adaptive_max_pool2d_backward, AdaptiveMaxPoolBackward<2>);
  BACKWARD(adaptive_max_pool3d_backward, AdaptiveMaxPoolBackward<3>);
  BACKWARD(fractional_max_pool2d_backward, FractionalMaxPool2dBackward);
  native<&max_pool3d>(library, "max_pool3d_with_indices");
  native<&max_pool3d_out>(library, "max_pool3d_with_indices.out");
  native<&max_pool3d_backward>(library, "max_pool3d_with_indices_backward");
  native<&max_pool3d_backward_out>(library, "max_pool3d_with_indices_backward.grad_input");
  native<&fractional_max_pool3d_backward>(library, "fractional_max_pool3d_backward");
  native<&fractional_max_pool3d_backward_out>(library, "fractional_max_pool3d_backward.grad_input");
}

}  // namespace
}  // namespace torch_webgpu
