// QR factors by Householder's reflections, a panel of columns at a time; the rest is reflected by matrix products.
#include <ATen/native/BatchLinearAlgebra.h>
#include <ATen/native/LinearAlgebraUtils.h>
#include <ATen/ops/geqrf_native.h>
#include <ATen/ops/linalg_householder_product_native.h>
#include <ATen/ops/linalg_qr_native.h>
#include <ATen/ops/ormqr_native.h>
#include <torch/library.h>

#include <algorithm>

#include "families/matmul.h"
#include "families/program.h"
#include "ops/linalg/linalg.h"
#include "ops/native.h"

namespace torch_webgpu {
namespace {

constexpr Program kPanel = make_grouped(
    make_program("geqrf", "qr", "T:a! T:tau!", "rows first last batch row column tau_batch", "", "workgroup"));
constexpr int64_t kWidth = 16;

// The product H1 H2 ... of a panel's reflections, as 1 - V T V^T with T = M^-1 diag(tau), where M is the upper triangle
// of diag(tau) V^T V with ones on the diagonal (C. Puglisi's form of the compact WY representation).
class Reflections {
 public:
  // `panel` has the vectors below its diagonal, `tau` is [batch, width].
  Reflections(const at::Tensor& panel, const at::Tensor& tau) : v_(panel.tril(-1)), tau_(tau.unsqueeze(2)) {
    v_.diagonal(0, 1, 2).fill_(1);
    m_ = product(v_.transpose(1, 2), v_).mul_(tau_);
  }

  // c = Q c, or Q^T c.
  void apply(const at::Tensor& c, bool transpose) const {
    if (c.numel() == 0) return;
    const at::Tensor w = product(v_.transpose(1, 2), c);
    if (transpose) {
      solve_triangular(m_.transpose(1, 2), w, /*upper=*/false, /*unit=*/true);
      w.mul_(tau_);
    } else {
      w.mul_(tau_);
      solve_triangular(m_, w, /*upper=*/true, /*unit=*/true);
    }
    subtract_product(c, v_, w);
  }

 private:
  static at::Tensor product(const at::Tensor& a, const at::Tensor& b) {
    const at::Tensor result = empty_tensor({a.size(0), a.size(1), b.size(2)}, {}, at::kFloat);
    matmul("linalg", result, a, b);
    return result;
  }

  at::Tensor v_, tau_, m_;
};

// c = Q c, or Q^T c, where Q are the reflections in `a` below its diagonal. With `is_identity` c is known to be one, so
// that what a reflection does not reach is left alone.
void reflect(const at::Tensor& a, const at::Tensor& tau, const at::Tensor& c, bool transpose, bool is_identity) {
  const int64_t rows = a.size(1), count = tau.size(1), panels = (count + kWidth - 1) / kWidth;
  for (int64_t i = 0; i < panels; ++i) {
    const int64_t first = (transpose ? i : panels - 1 - i) * kWidth, width = std::min(kWidth, count - first);
    const int64_t left = is_identity ? first : 0;
    const Reflections panel(block(a, first, rows - first, first, width), tau.narrow(1, first, width));
    panel.apply(block(c, first, rows - first, left, c.size(2) - left), transpose);
  }
}

at::Tensor as_taus(const at::Tensor& tau, int64_t batches) { return tau.reshape({batches, tau.size(-1)}); }

void geqrf_kernel(const at::Tensor& input, const at::Tensor& tau) {
  check_lapack_dtype(input, "geqrf_cpu");
  if (input.numel() == 0) return;
  const at::Tensor a = as_written_batch(input), taus = tau.view({a.size(0), tau.size(-1)});
  const int64_t rows = a.size(1), columns = a.size(2), rank = std::min(rows, columns);
  for (int64_t first = 0; first < rank; first += kWidth) {
    const int64_t last = std::min(first + kWidth, rank);
    run(kPanel, at::kFloat, {a.size(0), rows * kWidth * kWidth}, {a, taus},
        {rows, first, last, a.stride(0), a.stride(1), a.stride(2), taus.size(1)});
    if (last == columns) break;
    const Reflections panel(block(a, first, rows - first, first, last - first), taus.narrow(1, first, last - first));
    panel.apply(block(a, first, rows - first, last, columns - last), /*transpose=*/true);
  }
}

at::Tensor& orgqr_kernel(at::Tensor& result, const at::Tensor& tau) {
  check_lapack_dtype(result, "orgqr_cpu");
  if (result.numel() == 0) return result;
  const at::Tensor q = as_written_batch(result), vectors = q.clone();
  q.zero_();
  q.diagonal(0, 1, 2).fill_(1);
  reflect(vectors, as_taus(tau, q.size(0)), q, /*transpose=*/false, /*is_identity=*/true);
  return result;
}

void ormqr_kernel(const at::Tensor& input, const at::Tensor& tau, const at::Tensor& other, bool left, bool transpose) {
  check_lapack_dtype(input, "ormqr_cpu");
  if (other.numel() == 0) return;
  const at::Tensor a = as_batch(input), c = as_written_batch(other);
  // c Q is (Q^T c^T)^T
  reflect(a, as_taus(tau, a.size(0)), left ? c : c.transpose(1, 2), left == transpose, /*is_identity=*/false);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  at::native::geqrf_stub.set_privateuse1_dispatch_ptr(&geqrf_kernel);
  at::native::orgqr_stub.set_privateuse1_dispatch_ptr(&orgqr_kernel);
  at::native::ormqr_stub.set_privateuse1_dispatch_ptr(&ormqr_kernel);
  COMPOSED(linalg_qr, out);
  native<&at::native::geqrf>(library, "geqrf");
  native<&at::native::geqrf_out>(library, "geqrf.a");
  native<&at::native::linalg_householder_product>(library, "linalg_householder_product");
  native<&at::native::linalg_householder_product_out>(library, "linalg_householder_product.out");
  native<&at::native::ormqr>(library, "ormqr");
  native<&at::native::ormqr_out>(library, "ormqr.out");
}

}  // namespace
}  // namespace torch_webgpu
