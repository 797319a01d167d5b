// The one launcher of convolutions: tensors and a window in, a form of the gathered product out.
#pragma once
#include <ATen/core/Tensor.h>

#include <array>
#include <string>

#include "families/matmul.h"

namespace torch_webgpu {

inline int64_t ceil_div(int64_t value, int64_t by) { return (value + by - 1) / by; }

using Axes = std::array<int64_t, 3>;

inline int64_t product(const Axes& axes) { return axes[0] * axes[1] * axes[2]; }

// A tensor of images, or a weight, as five dimensions; the axes it lacks, in front, are of size 1.
struct View {
  explicit View(const at::Tensor& tensor) : tensor(tensor) {
    const int64_t missing = 5 - tensor.dim();
    for (int i = 0; i < 2; ++i) {
      outer[i] = tensor.size(i);
      outer_stride[i] = tensor.stride(i);
    }
    for (int64_t i = missing; i < 3; ++i) {
      size[i] = tensor.size(2 + i - missing);
      stride[i] = tensor.stride(2 + i - missing);
    }
  }
  const at::Tensor& tensor;
  int64_t outer[2], outer_stride[2];  // images and channels
  Axes size{1, 1, 1}, stride{};
};

// Whether it is float32 in lines of whole aligned quads.
bool is_aligned(const View& view);

// A weight by groups: rows are the channels that come out.
struct Weight {
  Weight(const View& view, int64_t groups, bool transposed) : kernel(view.size), kernel_stride(view.stride) {
    const int out = transposed ? 1 : 0, in = 1 - out;
    rows = view.outer[out] / (transposed ? 1 : groups);
    channels = view.outer[in] / (transposed ? groups : 1);
    row_stride = view.outer_stride[out];
    channel_stride = view.outer_stride[in];
    group_stride = view.outer_stride[0] * view.outer[0] / groups;
  }
  int64_t rows, channels, row_stride, channel_stride, group_stride;
  Axes kernel, kernel_stride;
};

// How the window moves.
struct Window {
  Window(at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, int64_t groups);
  Axes stride{1, 1, 1}, padding{}, dilation{1, 1, 1};
  int64_t groups;
};

// out = x (*) weight + bias, or its transpose, of which `out` gives the size. The bias is contiguous, or undefined.
void convolve(const Window& window, bool transposed, const at::Tensor& out, const at::Tensor& x,
              const at::Tensor& weight, const at::Tensor& bias);

// The convolution's elements into an epilogue instead: `sizes` are the result's, images and channels first. Not where
// each channel has a window of its own: those kernels store what they compute.
void convolve_into(const EpilogueCall& call, const Window& window, bool transposed, at::IntArrayRef sizes,
                   const at::Tensor& x, const at::Tensor& weight);

// The kernels that can compute it, by number, with a name each; those of a product where it is one.
Candidates convolution_candidates(const Window& window, bool transposed, at::IntArrayRef sizes, const at::Tensor& x,
                                  const at::Tensor& weight);

// For tests: GPUs take this tile for every convolution that it can compute. An empty name leaves the choice.
void force_convolution(const std::string& name);

// The gradient of a weight that took x to pixels of `grad`; for a transposed convolution the two change places.
void convolve_weight(const Window& window, const at::Tensor& grad_weight, const at::Tensor& grad, const at::Tensor& x);

// Where each channel has a window of its own: kernels that keep the window in registers, all of a 3 x 3 one that steps
// by 1, or a line of it. `channels` are those of x in a group; x has one plane.
enum class DepthwiseKind { none, sliding, lines };
DepthwiseKind depthwise_kind(const Window& window, bool transposed, int64_t channels, const Axes& kernel);
void convolve_depthwise(const Window& window, bool transposed, DepthwiseKind kind, const View& out, const View& x,
                        const at::Tensor& kernel, const Weight& weight, const at::Tensor& bias);
void convolve_depthwise_weight(const Window& window, const at::Tensor& grad_weight, const View& grad, const View& x);

}  // namespace torch_webgpu
