// A radix sort of long rows on GPUs, which moves blocks of elements in the order that they have in workgroup memory.
#pragma once
#include "ops/sorting/keys.h"

namespace torch_webgpu {

// Sorts contiguous rows: `taken` elements of each, from `first` on, and where in the row they were, into contiguous
// outputs; or all places into `order`, as sorted_order() has them. What is not wanted is undefined.
void radix_sort(const at::Tensor& rows, const KeyKind& kind, const Lines& lines, int64_t first, int64_t taken,
                const at::Tensor& values, const at::Tensor& indices, const at::Tensor& order);

// Whether one binding holds what lies between the passes.
bool fits_radix_sort(const KeyKind& kind, const Lines& lines);

}  // namespace torch_webgpu
