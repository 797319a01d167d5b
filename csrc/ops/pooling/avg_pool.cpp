// Average pooling of two and three dimensions, strided and adaptive, and their backwards.
#include <ATen/native/AdaptivePooling.h>
#include <ATen/native/Pool.h>
#include <ATen/ops/avg_pool2d_backward_meta.h>
#include <ATen/ops/avg_pool2d_meta.h>
#include <ATen/ops/avg_pool3d_backward_meta.h>
#include <ATen/ops/avg_pool3d_meta.h>

#include "families/pool.h"
#include "ops/native.h"

namespace torch_webgpu {
namespace {

using at::IntArrayRef;
using at::Tensor;

template <int64_t spatial>
void check_average(const char* kernel2d, const char* kernel3d, at::ScalarType dtype) {
  if constexpr (spatial == 2) {
    check_dtype(kernel2d, dtype, {at::kFloat, at::kHalf, at::kBFloat16, at::kLong});
  } else {
    check_dtype(kernel3d, dtype, {at::kFloat, at::kLong});
  }
}

template <int64_t spatial>
struct AvgPool {
  static void run(const Tensor& output, const Tensor& input, IntArrayRef kernel, IntArrayRef stride,
                  IntArrayRef padding, bool /*ceil_mode*/, bool count_include_pad, std::optional<int64_t> divisor) {
    check_average<spatial>("avg_pool2d", "avg_pool3d_out_frame", input.scalar_type());
    avg_pool(Windows::strided(spatial, kernel, stride, padding), spatial, input, output, count_include_pad,
             divisor.value_or(0));
  }
};

template <int64_t spatial>
struct AvgPoolBackward {
  static void run(const Tensor& grad_input, const Tensor& grad_output, const Tensor& /*input*/, IntArrayRef kernel,
                  IntArrayRef stride, IntArrayRef padding, bool /*ceil_mode*/, bool count_include_pad,
                  std::optional<int64_t> divisor) {
    check_average<spatial>("avg_pool2d_backward", "avg_pool3d_backward_out_frame", grad_output.scalar_type());
    avg_pool_backward(Windows::strided(spatial, kernel, stride, padding), spatial, grad_output, grad_input,
                      count_include_pad, divisor.value_or(0));
  }
};

// PyTorch's checks and sizes of adaptive_avg_pool2d and 3d, which are not structured ops.
template <int64_t spatial>
struct AdaptiveAvgPool {
  static constexpr const char* kName = spatial == 2 ? "adaptive_avg_pool2d" : "adaptive_avg_pool3d";

  static Tensor& out(const Tensor& input, IntArrayRef size, Tensor& output) {
    const int64_t rank = input.dim();
    TORCH_CHECK(size.size() == spatial, kName, ": output_size must be ", spatial);
    if constexpr (spatial == 2) {
      TORCH_CHECK(rank == 3 || rank == 4, "adaptive_avg_pool2d(): Expected 3D or 4D tensor, but got ", input.sizes());
    }
    for (int64_t i = spatial == 2 ? -2 : 1; i < (spatial == 2 ? 0 : rank); ++i) {
      TORCH_CHECK(input.size(i) > 0, kName, "(): Expected input to have non-zero size for non-batch dimensions, ",
                  "but input has sizes ", input.sizes(), " with dimension ", spatial == 2 ? i + rank : i, " being ",
                  "empty");
    }
    if constexpr (spatial == 3) {
      TORCH_CHECK(rank == 4 || rank == 5, "adaptive_avg_pool3d(): Expected 4D or 5D tensor, but got ", input.sizes());
    }
    TORCH_CHECK(input.dtype() == output.dtype(), "expected dtype ", input.dtype(), " for `output` but got dtype ",
                output.dtype());
    auto sizes = input.sizes().vec();
    std::copy(size.begin(), size.end(), sizes.end() - spatial);
    output.resize_(sizes, spatial == 2 && rank == 4 ? input.suggest_memory_format() : at::MemoryFormat::Contiguous);
    if (output.numel() == 0) return output;
    check_dtype(spatial == 2 ? "adaptive_avg_pool2d" : "adaptive_avg_pool3d_cpu", input.scalar_type(),
                {at::kFloat, at::kHalf, at::kBFloat16});
    avg_pool(Windows::adaptive(), spatial, input, output);
    return output;
  }
  static Tensor functional(const Tensor& input, IntArrayRef size) {
    Tensor output = empty_tensor({0}, {}, input.scalar_type());
    return out(input, size, output);
  }

  static Tensor& backward_out(const Tensor& grad_output, const Tensor& input, Tensor& grad_input) {
    at::native::adaptive_pool_empty_output_check(
        grad_output, spatial == 2 ? "adaptive_avg_pool2d_backward" : "adaptive_avg_pool3d_backward");
    if constexpr (spatial == 2) {
      TORCH_CHECK(input.dim() == grad_output.dim(), kName, "_backward(): Expected dimensions ", input.dim(),
                  " for `grad_output` but got dimensions ", grad_output.dim());
      TORCH_CHECK(input.dim() == 3 || input.dim() == 4, kName, "_backward(): Expected 3D or 4D tensor, but got ",
                  input.sizes());
      TORCH_CHECK(input.dtype() == grad_output.dtype(), "expected dtype ", input.dtype(),
                  " for `grad_output` but got dtype ", grad_output.dtype());
      TORCH_CHECK(input.dtype() == grad_input.dtype(), "expected dtype ", input.dtype(),
                  " for `grad_input` but got dtype ", grad_input.dtype());
    }
    grad_input.resize_(input.sizes(),
                       spatial == 2 && input.dim() == 4 ? input.suggest_memory_format() : at::MemoryFormat::Contiguous);
    check_dtype(spatial == 2 ? "adaptive_avg_pool2d_backward" : "adaptive_avg_pool3d_backward_cpu",
                grad_output.scalar_type(), {at::kFloat, at::kHalf, at::kBFloat16});
    avg_pool_backward(Windows::adaptive(), spatial, grad_output, grad_input);
    return grad_input;
  }
  static Tensor backward(const Tensor& grad_output, const Tensor& input) {
    Tensor grad_input = empty_tensor({0}, {}, input.scalar_type());
    return backward_out(grad_output, input, grad_input);
  }
};

#define POOL(name, overload, apply)                                                   \
  native<&OneOutput<at::meta::structured_##name, apply>::functional>(library, #name); \
  native<&OneOutput<at::meta::structured_##name, apply>::out>(library, #name "." overload)

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  POOL(avg_pool2d, "out", AvgPool<2>);
  POOL(avg_pool3d, "out", AvgPool<3>);
  POOL(avg_pool2d_backward, "grad_input", AvgPoolBackward<2>);
  POOL(avg_pool3d_backward, "grad_input", AvgPoolBackward<3>);
  native<&AdaptiveAvgPool<2>::functional>(library, "_adaptive_avg_pool2d");
  native<&AdaptiveAvgPool<3>::functional>(library, "_adaptive_avg_pool3d");
  native<&AdaptiveAvgPool<2>::out>(library, "adaptive_avg_pool2d.out");
  native<&AdaptiveAvgPool<3>::out>(library, "adaptive_avg_pool3d.out");
  native<&AdaptiveAvgPool<2>::backward>(library, "_adaptive_avg_pool2d_backward");
  native<&AdaptiveAvgPool<3>::backward>(library, "_adaptive_avg_pool3d_backward");
  native<&AdaptiveAvgPool<3>::backward_out>(library, "adaptive_avg_pool3d_backward.grad_input");
}

}  // namespace
}  // namespace torch_webgpu
