// Sparse tensors of coordinates: their places as numbers into the sparse dimensions, laid out one behind another.
#pragma once
#include <ATen/core/Tensor.h>

namespace torch_webgpu {

// How many places the sparse dimensions have.
int64_t place_count(const at::Tensor& sparse);

// The place of each of its elements, int64.
at::Tensor places_of(const at::Tensor& sparse);

// `dense`, whose sizes are those of `sparse`, as a row per place.
at::Tensor rows_of(const at::Tensor& dense, const at::Tensor& sparse);

// Makes `out` the tensor of these sizes, indices and values.
void set_elements(const at::Tensor& out, int64_t sparse_dim, at::IntArrayRef sizes, const at::Tensor& indices,
                  const at::Tensor& values, bool coalesced);

}  // namespace torch_webgpu
