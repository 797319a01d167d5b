// The exponential of a matrix: a polynomial of it scaled to a norm of at most one, and squarings.
#include <ATen/native/LinearAlgebraUtils.h>
#include <ATen/ops/exp2.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/where.h>
#include <torch/library.h>

#include <cmath>

#include "ops/linalg/linalg.h"
#include "ops/native.h"

namespace torch_webgpu {
namespace {

// Taylor's polynomial of degree 11, exact to 1/12! for a norm of one, in powers of a^4.
at::Tensor polynomial(const at::Tensor& a) {
  const at::Tensor one = at::eye(a.size(-1), a.options()), a2 = at::matmul(a, a), a3 = at::matmul(a2, a),
                   a4 = at::matmul(a2, a2);
  const auto part = [&](int degree) {
    const double c0 = 1 / std::tgamma(degree + 1), c1 = c0 / (degree + 1), c2 = c1 / (degree + 2);
    return a3.mul(c2 / (degree + 3)).add_(a2, c2).add_(a, c1).add_(one, c0);
  };
  return part(0).add_(at::matmul(a4, part(4).add_(at::matmul(a4, part(8)))));
}

at::Tensor matrix_exp(const at::Tensor& self) {
  at::native::squareCheckInputs(self, "linalg.matrix_exp");
  at::native::checkFloatingOrComplex(self, "linalg.matrix_exp");
  if (self.numel() == 0) return self.clone();
  if (self.size(-1) == 1) return self.exp();
  const at::Tensor a = as_batch(self).to(at::kFloat);
  const at::Tensor squarings = a.abs().sum(1).amax(1).log2().ceil().clamp_min(0).view({-1, 1, 1});
  at::Tensor result = polynomial(a.mul(at::exp2(squarings.neg())));
  const float most = squarings.max().item<float>();  // at most 128, for the largest float; a NaN needs no squaring
  for (int i = 0; i < most && i < 128; ++i) result = at::where(squarings.gt(i), at::matmul(result, result), result);
  return result.to(self.scalar_type()).view(self.sizes());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) { native<&matrix_exp>(library, "linalg_matrix_exp"); }

}  // namespace
}  // namespace torch_webgpu
