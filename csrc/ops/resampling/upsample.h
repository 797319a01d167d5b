// Interpolation of bytes, which the CPU does in whole numbers.
#pragma once
#include <ATen/core/Tensor.h>

#include <array>
#include <optional>

namespace torch_webgpu {

struct ByteFilter {
  double (*at)(double distance);
  int64_t reach;  // in inputs, to each side
  bool smooth;    // as wide as an output where there are fewer of them than inputs
};

// Scales are width first.
void upsample_bytes(const ByteFilter& filter, const at::Tensor& input, const at::Tensor& output, bool align_corners,
                    const std::array<std::optional<double>, 3>& scales);

}  // namespace torch_webgpu
