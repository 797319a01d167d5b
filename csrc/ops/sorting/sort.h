// Sorting along a dimension, stable and exact in every dtype; NaN is greater than all.
#pragma once
#include <ATen/core/Tensor.h>

#include "families/lines.h"

namespace torch_webgpu {

// int32, one dimension: for each place, line by line, the place of the element that belongs there. `input` is
// contiguous.
at::Tensor sorted_order(const at::Tensor& input, const Lines& lines, bool descending);

// `taken` elements of each sorted line of `dim`, from `first` on, and their int64 indices, into outputs of that shape.
void sort_into(const at::Tensor& self, int64_t dim, bool descending, int64_t first, int64_t taken,
               const at::Tensor& values, const at::Tensor& indices);

}  // namespace torch_webgpu
