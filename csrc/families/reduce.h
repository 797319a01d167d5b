// From a tensor, a set of dimensions and a row to launches: the one launcher of reductions.
#pragma once
#include <ATen/core/Tensor.h>

#include "shader/reduce.h"

namespace torch_webgpu {

// Reduces `dims` of `input` (all of them when empty) into `output`, which has the input's shape without them, or with
// ones in their place. Computes in `compute`. A row of two results puts the other into `second`, of the same shape.
void reduce(const ReduceRow& row, const at::Tensor& input, at::OptionalIntArrayRef dims, bool keepdim,
            const at::Tensor& output, at::ScalarType compute, const at::Tensor& second = {}, double scalar = 0);

}  // namespace torch_webgpu
