#pragma once
#include <ATen/TensorIterator.h>

namespace torch_webgpu {

// Copies between tensors of one dtype, of which each lies along memory in a dimension of its own. False, with nothing
// done, for all others and where a plain copy is as good.
bool copy_transposed(const at::TensorIteratorBase& iterator, const at::Tensor& target, const at::Tensor& source);

}  // namespace torch_webgpu
