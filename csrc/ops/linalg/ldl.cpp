// LDL^T factors of symmetric matrices, a matrix per workgroup, and solutions from them.
#include <ATen/native/BatchLinearAlgebra.h>
#include <ATen/native/LinearAlgebraUtils.h>
#include <ATen/ops/linalg_ldl_factor_ex_native.h>
#include <ATen/ops/linalg_ldl_solve_native.h>
#include <torch/library.h>

#include "families/launch.h"
#include "families/program.h"
#include "ops/linalg/linalg.h"
#include "ops/native.h"

namespace torch_webgpu {
namespace {

constexpr Program kFactor =
    make_grouped(make_program("ldl_factor", "ldl", "T:a! u:pivots! u:info!", "size batch row column"));
constexpr Program kSolve = make_grouped(make_program("ldl_solve", "ldl_solve", "T:a u:pivots T:b!",
                                                     "size columns a_batch a_row a_column b_batch b_row b_column"));

// For real matrices Hermitian means symmetric; PyTorch's ops use the lower triangle only.
void ldl_factor_kernel(const at::Tensor& input, const at::Tensor& pivots, const at::Tensor& info, bool upper,
                       bool /*hermitian*/) {
  check_lapack_dtype(input, "ldl_factor_kernel_cpu");
  TORCH_INTERNAL_ASSERT(!upper);
  const at::Tensor a = as_written_batch(input);
  const int64_t size = a.size(1);
  if (a.numel() == 0) return;
  run(kFactor, at::kFloat, {a.size(0), size * size * size}, {a, pivots, info},
      {size, a.stride(0), a.stride(1), a.stride(2)});
}

void ldl_solve_kernel(const at::Tensor& factors, const at::Tensor& pivots, const at::Tensor& result, bool upper,
                      bool /*hermitian*/) {
  check_lapack_dtype(factors, "ldl_solve_kernel_cpu");
  TORCH_INTERNAL_ASSERT(!upper);
  if (result.numel() == 0) return;
  auto sizes = result.sizes().vec();
  sizes.back() = result.size(-2);
  const at::Tensor a = as_batch(factors.expand(sizes)), b = as_written_batch(result);
  sizes.pop_back();
  const int64_t size = b.size(1), columns = b.size(2), lanes = target().workgroup;
  run(kSolve, at::kFloat, {b.size(0) * ((columns + lanes - 1) / lanes), size * size * lanes},
      {a, pivots.expand(sizes).contiguous(), b},
      {size, columns, a.stride(0), a.stride(1), a.stride(2), b.stride(0), b.stride(1), b.stride(2)});
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  at::native::ldl_factor_stub.set_privateuse1_dispatch_ptr(&ldl_factor_kernel);
  at::native::ldl_solve_stub.set_privateuse1_dispatch_ptr(&ldl_solve_kernel);
  COMPOSED(linalg_ldl_factor_ex, out);
  COMPOSED(linalg_ldl_solve, out);
}

}  // namespace
}  // namespace torch_webgpu
