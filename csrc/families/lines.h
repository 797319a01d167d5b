// A tensor as lines along one dimension: [outer, length, inner], line by line.
#pragma once
#include <ATen/WrapDimUtils.h>
#include <ATen/core/Tensor.h>

#include "shader/dtype.h"

namespace torch_webgpu {

struct Lines {
  Lines(const at::Tensor& tensor, int64_t dim) {
    if (tensor.dim() == 0) return;
    dim = at::maybe_wrap_dim(dim, tensor.dim());
    length = tensor.size(dim);
    for (int64_t i = dim + 1; i < tensor.dim(); ++i) inner *= tensor.size(i);
    count = length == 0 ? 0 : tensor.numel() / length;
  }
  Lines(int64_t count, int64_t length) : count(count), length(length) {}
  int64_t count = 1, length = 1, inner = 1;
};

// The dtype that a kernel can store without two invocations sharing a word.
inline at::ScalarType word_dtype(at::ScalarType dtype) {
  switch (dtype) {
    case at::kHalf:
    case at::kBFloat16: return at::kFloat;
    case at::kShort:
    case at::kChar:
    case at::kByte:
    case at::kBool: return at::kInt;
    default: return dtype;
  }
}

}  // namespace torch_webgpu
