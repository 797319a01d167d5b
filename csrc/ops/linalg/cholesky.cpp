// Cholesky factors of halves in turn, small ones by a kernel; inverses and solutions from them.
#include <ATen/native/BatchLinearAlgebra.h>
#include <ATen/native/LinearAlgebraUtils.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/cholesky_inverse_native.h>
#include <ATen/ops/cholesky_native.h>
#include <ATen/ops/linalg_cholesky_ex_native.h>
#include <torch/library.h>

#include "families/program.h"
#include "ops/linalg/linalg.h"
#include "ops/native.h"

namespace torch_webgpu {
namespace {

constexpr Program kCholesky =
    make_grouped(make_program("cholesky", "cholesky", "T:a! u:info!", "size batch row column first"));

constexpr int64_t kLeaf = 32;

// Factorizes the lower triangle; the elements above the diagonal are overwritten.
void factor(const at::Tensor& a, const at::Tensor& info, int64_t first) {
  const int64_t size = a.size(1);
  if (size > kLeaf) {
    const int64_t head = head_of(size, kLeaf), tail = size - head;
    const at::Tensor a11 = block(a, 0, head, 0, head), a21 = block(a, head, tail, 0, head),
                     a22 = block(a, head, tail, head, tail);
    factor(a11, info, first);
    solve_triangular(a11, a21.transpose(1, 2), /*upper=*/false);
    subtract_product(a22, a21, a21.transpose(1, 2));
    factor(a22, info, first + head);
    return;
  }
  run(kCholesky, at::kFloat, {a.size(0), size * size * size}, {a, info},
      {size, a.stride(0), a.stride(1), a.stride(2), first});
}

void cholesky_kernel(const at::Tensor& input, const at::Tensor& info, bool upper) {
  check_lapack_dtype(input, "cholesky_cpu");
  const at::Tensor a = as_written_batch(input);
  factor(upper ? a.transpose(1, 2) : a, info, 0);
}

// b = (factor factor^T)^-1 b
void solve(const at::Tensor& factor, const at::Tensor& b, bool upper) {
  const at::Tensor lower = upper ? factor.transpose(1, 2) : factor;
  solve_triangular(lower, b, /*upper=*/false);
  solve_triangular(lower.transpose(1, 2), b, /*upper=*/true);
}

at::Tensor& cholesky_inverse_kernel(at::Tensor& result, at::Tensor& infos, bool upper) {
  check_lapack_dtype(result, "cholesky_inverse_out_cpu");
  if (result.numel() == 0) return result;
  const at::Tensor inverse = as_written_batch(result), factor = inverse.clone();
  const at::Tensor zeros = factor.diagonal(0, 1, 2).eq(0).to(at::kInt);
  infos.copy_(zeros.amax(-1).mul(zeros.argmax(-1).add(1)));
  inverse.zero_();
  inverse.diagonal(0, 1, 2).fill_(1);
  solve(factor, inverse, upper);
  return result;
}

at::Tensor cholesky_solve_helper(const at::Tensor& self, const at::Tensor& factor, bool upper) {
  check_lapack_dtype(self, "cholesky_solve_cpu");
  const at::Tensor result = at::native::cloneBatchedColumnMajor(self);
  if (result.numel() > 0) solve(as_batch(factor), as_written_batch(result), upper);
  return result;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  at::native::cholesky_stub.set_privateuse1_dispatch_ptr(&cholesky_kernel);
  at::native::cholesky_inverse_stub.set_privateuse1_dispatch_ptr(&cholesky_inverse_kernel);
  COMPOSED(linalg_cholesky_ex, L);
  native<&at::native::cholesky>(library, "cholesky");
  native<&at::native::cholesky_out>(library, "cholesky.out");
  native<&at::native::cholesky_inverse>(library, "cholesky_inverse");
  native<&at::native::cholesky_inverse_out>(library, "cholesky_inverse.out");
  native<&cholesky_solve_helper>(library, "_cholesky_solve_helper");
}

}  // namespace
}  // namespace torch_webgpu
