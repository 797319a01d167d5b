// The one launcher of convolutions: tensors and a window in, a form of the gathered product out.
#pragma once
#include <ATen/core/Tensor.h>

#include <array>

namespace torch_webgpu {

// How the window moves; the axes a tensor lacks, in front, are of size 1.
struct Window {
  Window(at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, int64_t groups);
  std::array<int64_t, 3> stride{1, 1, 1}, padding{}, dilation{1, 1, 1};
  int64_t groups;
};

// out = x (*) weight + bias, or its transpose, of which `out` gives the size. float32, float16 and bfloat16.
void convolve(const Window& window, bool transposed, const at::Tensor& out, const at::Tensor& x,
              const at::Tensor& weight, const at::Tensor& bias);

// The same for integers.
void convolve_integers(const Window& window, bool transposed, const at::Tensor& out, const at::Tensor& x,
                       const at::Tensor& weight, const at::Tensor& bias);

// The gradient of a weight that took x to pixels of `grad`; for a transposed convolution the two change places.
void convolve_weight(const Window& window, const at::Tensor& grad_weight, const at::Tensor& grad, const at::Tensor& x);

}  // namespace torch_webgpu
