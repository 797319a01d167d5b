// Running totals along a dimension.
#pragma once
#include <ATen/core/Tensor.h>

namespace torch_webgpu {

// Inclusive sums of an int32 tensor of one dimension, as words: what sorting and counting place by.
at::Tensor running_counts(const at::Tensor& counts);

}  // namespace torch_webgpu
