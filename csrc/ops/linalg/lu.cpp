// LU factors with partial pivoting, half of the columns after the other; determinants, inverses and solutions from
// them.
#include <ATen/native/BatchLinearAlgebra.h>
#include <ATen/native/LinearAlgebraUtils.h>
#include <ATen/ops/_linalg_det_native.h>
#include <ATen/ops/_linalg_slogdet_native.h>
#include <ATen/ops/_linalg_solve_ex_native.h>
#include <ATen/ops/linalg_inv_ex_native.h>
#include <ATen/ops/linalg_lu_factor_ex_native.h>
#include <ATen/ops/linalg_lu_native.h>
#include <ATen/ops/linalg_lu_solve_native.h>
#include <ATen/ops/lu_unpack_native.h>
#include <torch/library.h>

#include <algorithm>

#include "families/launch.h"
#include "families/program.h"
#include "ops/linalg/linalg.h"
#include "ops/native.h"

namespace torch_webgpu {
namespace {

constexpr Program kPanel = make_grouped(make_program("lu_factor", "lu", "T:a! u:pivots! u:info!",
                                                     "rows columns first last batch row column pivots_batch pivoting"));
constexpr Program kSwaps = make_grouped(make_program("lu_pivots", "row_swaps", "T:b! u:pivots",
                                                     "count rows columns batch row column pivots_batch reversed"));

constexpr int64_t kLeaf = 16;

struct Factors {
  const at::Tensor &a, &pivots, &info;
  const bool pivoting;
};

// Factorizes the columns from first to last.
void factor(const Factors& lu, int64_t first, int64_t last) {
  const at::Tensor& a = lu.a;
  const int64_t rows = a.size(1), width = last - first;
  if (width > kLeaf) {
    const int64_t middle = first + head_of(width, kLeaf), below = rows - middle;
    factor(lu, first, middle);
    const at::Tensor right = block(a, first, middle - first, middle, last - middle);
    solve_triangular(block(a, first, middle - first, first, middle - first), right, /*upper=*/false, /*unit=*/true);
    subtract_product(block(a, middle, below, middle, last - middle), block(a, middle, below, first, middle - first),
                     right);
    factor(lu, middle, last);
    return;
  }
  run(kPanel, at::kFloat, {a.size(0), rows * width * width}, {a, lu.pivots, lu.info},
      {rows, a.size(2), first, last, a.stride(0), a.stride(1), a.stride(2), lu.pivots.size(-1), lu.pivoting});
}

void lu_factor_kernel(const at::Tensor& input, const at::Tensor& pivots, const at::Tensor& info, bool pivoting) {
  check_lapack_dtype(input, "lu_cpu");
  const at::Tensor a = as_written_batch(input);
  const int64_t rows = a.size(1), columns = a.size(2), rank = std::min(rows, columns);
  if (a.numel() == 0) return;
  factor({a, pivots, info, pivoting}, 0, rank);
  solve_triangular(block(a, 0, rank, 0, rank), block(a, 0, rank, rank, columns - rank), /*upper=*/false,
                   /*unit=*/true);
}

// Takes matrices, or permutations, which are int64 columns.
void swap_rows(const at::Tensor& b, const at::Tensor& pivots, bool reversed) {
  const int64_t columns = b.size(2), lanes = target().workgroup, tiles = (columns + lanes - 1) / lanes;
  const int64_t count = pivots.size(-1);
  run(kSwaps, b.scalar_type(), {b.size(0) * tiles, count * lanes}, {b, pivots},
      {count, b.size(1), columns, b.stride(0), b.stride(1), b.stride(2), count, reversed});
}

void unpack_pivots_kernel(at::TensorIterator& iterator, int64_t /*size*/, int64_t rows) {
  const at::Tensor &permutation = iterator.tensor(0), &pivots = iterator.tensor(1);
  if (permutation.numel() > 0 && pivots.numel() > 0)
    swap_rows(permutation.view({permutation.numel() / rows, rows, 1}), pivots, /*reversed=*/false);
}

void lu_solve_kernel(const at::Tensor& lu, const at::Tensor& pivots, const at::Tensor& b,
                     at::native::TransposeType transpose) {
  check_lapack_dtype(b, "linalg.lu_solve_cpu");
  if (b.numel() == 0) return;
  auto sizes = b.sizes().vec();
  sizes.back() = b.size(-2);
  const at::Tensor factors = as_batch(lu.expand(sizes)), sides = as_written_batch(b);
  sizes.pop_back();
  const at::Tensor swaps = pivots.expand(sizes).contiguous();
  if (transpose == at::native::TransposeType::NoTranspose) {
    swap_rows(sides, swaps, /*reversed=*/false);
    solve_triangular(factors, sides, /*upper=*/false, /*unit=*/true);
    solve_triangular(factors, sides, /*upper=*/true);
  } else {
    solve_triangular(factors.transpose(1, 2), sides, /*upper=*/false);
    solve_triangular(factors.transpose(1, 2), sides, /*upper=*/true, /*unit=*/true);
    swap_rows(sides, swaps, /*reversed=*/true);
  }
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  at::native::lu_factor_stub.set_privateuse1_dispatch_ptr(&lu_factor_kernel);
  at::native::lu_solve_stub.set_privateuse1_dispatch_ptr(&lu_solve_kernel);
  at::native::unpack_pivots_stub.set_privateuse1_dispatch_ptr(&unpack_pivots_kernel);
  COMPOSED(linalg_lu_factor_ex, out);
  COMPOSED(linalg_lu, out);
  COMPOSED(lu_unpack, out);
  COMPOSED(linalg_lu_solve, out);
  COMPOSED(_linalg_solve_ex, result);
  COMPOSED(linalg_inv_ex, inverse);
  COMPOSED(_linalg_det, result);
  COMPOSED(_linalg_slogdet, sign);
}

}  // namespace
}  // namespace torch_webgpu
