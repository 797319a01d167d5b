// From an iterator and a row to a launch: the one launcher of pointwise ops.
#pragma once
#include <ATen/TensorIterator.h>

#include <initializer_list>

#include "shader/pointwise.h"

namespace torch_webgpu {

using Scalars = std::initializer_list<const c10::Scalar*>;

// Computes in `compute`; each operand is loaded in its own dtype and converted in the kernel. `words` are the row's raw
// parameters. A row that knows its elements' indices sees them in the iterator's order, and must fit its bindings.
void elementwise(at::TensorIteratorBase& iterator, const PointwiseRow& row, at::ScalarType compute,
                 Scalars scalars = {}, c10::ArrayRef<uint32_t> words = {});

// The same, with operands taken as integers of their size: copies that keep every bit, of any dtype.
void elementwise_bits(at::TensorIteratorBase& iterator, const PointwiseRow& row, Scalars scalars = {});

}  // namespace torch_webgpu
