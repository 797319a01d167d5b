// The one launcher of matrix products, for every family that ends in one.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>

namespace torch_webgpu {

// out = alpha * (a @ b) + beta * c, of matrices or batches of them, through any strides. c has the shape of out,
// perhaps expanded, or is undefined. `name` is what an error says.
void matmul(const char* name, const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, const at::Tensor& c = {},
            const at::Scalar& alpha = 1, const at::Scalar& beta = 0);

}  // namespace torch_webgpu
