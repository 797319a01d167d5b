// Windows of poolings along width, height and depth, and the kernels over them: the largest element, the average.
#pragma once
#include <array>

#include "families/spatial.h"

namespace torch_webgpu {

struct Windows {
  enum class Kind : uint8_t { strided, adaptive, listed };  // listed: their beginnings are in a tensor

  // As PyTorch takes them: one number for all dimensions, and no stride for that of the kernel.
  static Windows strided(int64_t spatial, at::IntArrayRef kernel, at::IntArrayRef stride, at::IntArrayRef padding,
                         at::IntArrayRef dilation = {1});
  static Windows adaptive() { return {.kind = Kind::adaptive}; }

  Kind kind = Kind::strided;
  std::array<int64_t, 3> kernel{1, 1, 1}, step{1, 1, 1}, padding{0, 0, 0}, dilation{1, 1, 1};  // width first
};

// Tensors have five dimensions. `inner` is of the input's sizes, `outer` of the output's; `read` is what is loaded.
void describe(Spatial& launch, const Windows& windows, const at::Tensor& inner, const at::Tensor& outer,
              const at::Tensor& read);

// `starts` holds, for listed windows, where those of a plane begin: along the width, the height, the depth.
void max_pool(const Windows& windows, int64_t spatial, const at::Tensor& input, const at::Tensor& output,
              const at::Tensor& indices, const at::Tensor& starts = {});
void max_pool_backward(const Windows& windows, int64_t spatial, const at::Tensor& grad_output,
                       const at::Tensor& indices, const at::Tensor& grad_input);

// A divisor of zero means the number of elements, `padded` that padding counts.
void avg_pool(const Windows& windows, int64_t spatial, const at::Tensor& input, const at::Tensor& output,
              bool padded = false, int64_t divisor = 0);
void avg_pool_backward(const Windows& windows, int64_t spatial, const at::Tensor& grad_output,
                       const at::Tensor& grad_input, bool padded = false, int64_t divisor = 0);

}  // namespace torch_webgpu
