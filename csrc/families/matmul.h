// The one launcher of matrix products, for every family that ends in one.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>

#include <string>
#include <utility>
#include <vector>

#include "shader/matmul.h"

namespace torch_webgpu {

// out = alpha * (a @ b) + beta * c, of matrices or batches of them, through any strides. c has the shape of out,
// perhaps expanded, or is undefined; it may be out itself. `name` is what an error says. An epilogue of one's own takes
// the place of that formula, with alpha and beta as s0 and s1.
void matmul(const char* name, const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, const at::Tensor& c = {},
            const at::Scalar& alpha = 1, const at::Scalar& beta = 0, const Epilogue* epilogue = nullptr);

// a @ b, whose elements `epilogue`'s text takes. It binds `tensors`, some of which are only read: a bit each. Floats
// alone; the epilogue lives as long as the process.
constexpr int64_t kChosen = -1;
struct EpilogueCall {
  const Epilogue& epilogue;
  at::TensorList tensors;
  uint32_t read_only;
  at::ArrayRef<uint32_t> words;
  int64_t candidate = kChosen;  // a number that candidates() gave for such operands, or kChosen: the launcher's choice
};
void matmul_into(const EpilogueCall& call, const at::Tensor& a, const at::Tensor& b);

// On GPUs: out, a matrix, = the sum of float32 matrices that lie dense, one behind the other.
void add_parts(const char* name, const at::Tensor& out, const at::Tensor& parts);

constexpr int64_t kGpuUnits = 96;  // of a large GPU: so many workgroups at least, or some of it idles

// The kernels that can compute a @ b of floats, by number, with a name each.
using Candidates = std::vector<std::pair<int64_t, std::string>>;
Candidates matmul_candidates(const at::Tensor& a, const at::Tensor& b);

// For tests: GPUs take this kernel for every product that it can compute. An empty name leaves the choice.
void force_matmul(const std::string& name);

}  // namespace torch_webgpu
