// pinv and matrix_rank: PyTorch's own, but with tolerances in the input's precision. Left out, PyTorch makes them in
// float64, which WebGPU does not have.
#include <ATen/native/LinearAlgebraUtils.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linalg_matrix_rank_native.h>
#include <ATen/ops/linalg_pinv_native.h>
#include <ATen/ops/where.h>
#include <torch/library.h>

#include "ops/native.h"

namespace torch_webgpu {
namespace {

using Tolerance = std::optional<at::Tensor>;

at::Tensor number(const at::Tensor& like, double value) {
  return at::full({}, value, like.options().dtype(c10::toRealValueType(like.scalar_type())));
}

struct Tolerances {
  Tolerances(const at::Tensor& a, const Tolerance& given_atol, const Tolerance& given_rtol)
      : atol(given_atol ? *given_atol : number(a, 0)) {
    if (given_rtol) {
      rtol = *given_rtol;
      return;
    }
    const double epsilon = at::native::_get_epsilon(c10::toRealValueType(a.scalar_type()));
    rtol = number(a, epsilon * static_cast<double>(std::max(a.size(-1), a.size(-2))));
    if (given_atol) rtol = at::where(atol.gt(0), number(a, 0), rtol);
  }
  at::Tensor atol, rtol;
};

at::Tensor pinv(const at::Tensor& a, const Tolerance& atol, const Tolerance& rtol, bool hermitian) {
  const bool is_refused = a.dim() < 2 || c10::toRealValueType(a.scalar_type()) != at::kFloat;
  if (is_refused) return at::native::linalg_pinv(a, atol, rtol, hermitian);
  const Tolerances tolerances(a, atol, rtol);
  return at::native::linalg_pinv(a, Tolerance(tolerances.atol), Tolerance(tolerances.rtol), hermitian);
}

at::Tensor rank(const at::Tensor& a, const Tolerance& atol, const Tolerance& rtol, bool hermitian) {
  at::native::checkIsMatrix(a, "torch.linalg.matrix_rank", "input");
  const Tolerances tolerances(a, atol, rtol);
  return at::native::linalg_matrix_rank(a, Tolerance(tolerances.atol), Tolerance(tolerances.rtol), hermitian);
}

at::Tensor rank_of_numbers(const at::Tensor& a, std::optional<double> atol, std::optional<double> rtol,
                           bool hermitian) {
  const auto tensor = [&](std::optional<double> value) { return value ? Tolerance(number(a, *value)) : Tolerance(); };
  return rank(a, tensor(atol), tensor(rtol), hermitian);
}

at::Tensor rank_of_number(const at::Tensor& a, double tol, bool hermitian) {
  return rank(a, number(a, tol), number(a, 0), hermitian);
}

at::Tensor rank_of_tensor(const at::Tensor& a, const at::Tensor& tol, bool hermitian) {
  return rank(a, tol, number(a, 0), hermitian);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  native<&pinv>(library, "linalg_pinv.atol_rtol_tensor");
  // This composite op may be overridden: a rank has no gradient that could get lost.
  native<&rank>(library, "linalg_matrix_rank.atol_rtol_tensor");
  native<&rank_of_numbers>(library, "linalg_matrix_rank.atol_rtol_float");
  native<&rank_of_number>(library, "linalg_matrix_rank");
  native<&rank_of_tensor>(library, "linalg_matrix_rank.tol_tensor");
}

}  // namespace
}  // namespace torch_webgpu
