// Triangular systems: halves are solved in turn and joined by a matrix product, small ones by a kernel.
#include <ATen/native/BatchLinearAlgebra.h>
#include <ATen/native/LinearAlgebraUtils.h>
#include <ATen/ops/linalg_solve_triangular_native.h>
#include <ATen/ops/triangular_solve_native.h>
#include <torch/library.h>

#include "families/launch.h"
#include "families/matmul.h"
#include "families/program.h"
#include "ops/linalg/linalg.h"
#include "ops/native.h"

namespace torch_webgpu {
namespace {

constexpr Program kTriangular =
    make_grouped(make_program("solve_triangular", "triangular", "T:a T:b!",
                              "size columns a_batch a_row a_column b_batch b_row b_column reversed unit"));
constexpr uint32_t kAlong = 0, kAcross = 1, kTiled = 2;

c10::SmallVector<int64_t, 3> batch_sizes(const at::Tensor& tensor) {
  return {at::native::batchCount(tensor), tensor.size(-2), tensor.size(-1)};
}

}  // namespace

at::Tensor as_batch(const at::Tensor& tensor) { return tensor.reshape(batch_sizes(tensor)); }
at::Tensor as_written_batch(const at::Tensor& tensor) { return tensor.view(batch_sizes(tensor)); }

at::Tensor block(const at::Tensor& a, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  return a.as_strided({a.size(0), rows, columns}, a.strides(),
                      a.storage_offset() + row * a.stride(1) + column * a.stride(2));
}

void check_lapack_dtype(const at::Tensor& tensor, const char* name) {
  TORCH_CHECK_NOT_IMPLEMENTED(tensor.scalar_type() == at::kFloat, "\"", name, "\" not implemented for '",
                              toString(tensor.scalar_type()), "'");
}

void subtract_product(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
  if (a.size(2) > 0) matmul("linalg", out, a, b, out, -1, 1);
}

void solve_triangular(const at::Tensor& a, const at::Tensor& b, bool upper, bool unit) {
  const int64_t size = b.size(1), columns = b.size(2), batches = b.size(0);
  if (b.numel() == 0) return;
  // With few columns some lanes are idle; a software adapter gains by every load that it saves.
  const uint32_t way = columns < 4 ? kAlong : columns >= 16 && target().software ? kTiled : kAcross;
  const int64_t leaf = way == kAlong ? 1024 : 32;
  if (size > leaf) {
    const int64_t head = head_of(size, leaf), tail = size - head;
    const at::Tensor b1 = block(b, 0, head, 0, columns), b2 = block(b, head, tail, 0, columns);
    const at::Tensor a11 = block(a, 0, head, 0, head), a22 = block(a, head, tail, head, tail);
    if (upper) {
      solve_triangular(a22, b2, upper, unit);
      subtract_product(b1, block(a, 0, head, head, tail), b2);
      solve_triangular(a11, b1, upper, unit);
    } else {
      solve_triangular(a11, b1, upper, unit);
      subtract_product(b2, block(a, head, tail, 0, head), b1);
      solve_triangular(a22, b2, upper, unit);
    }
    return;
  }
  const int64_t each = way == kAlong ? 1 : target().workgroup * (way == kTiled ? 4 : 1),
                tiles = (columns + each - 1) / each;
  run(kTriangular, at::kFloat, {batches * tiles, size * size * each}, {a, b},
      {size, columns, a.stride(0), a.stride(1), a.stride(2), b.stride(0), b.stride(1), b.stride(2), upper, unit}, way);
}

namespace {

void triangular_solve_kernel(const at::Tensor& a, const at::Tensor& b, bool left, bool upper,
                             at::native::TransposeType transpose, bool unit) {
  check_lapack_dtype(a, "triangular_solve_cpu");
  at::Tensor matrix = as_batch(a), sides = as_written_batch(b);
  // BLAS reads memory by columns, whatever the strides of a square matrix say.
  if (!matrix.transpose(1, 2).is_contiguous()) matrix = matrix.transpose(1, 2);
  if (transpose != at::native::TransposeType::NoTranspose) {
    matrix = matrix.transpose(1, 2);
    upper = !upper;
  }
  if (!left) {  // x a = b is a^T x^T = b^T
    matrix = matrix.transpose(1, 2);
    sides = sides.transpose(1, 2);
    upper = !upper;
  }
  // LAPACK takes matrices with more rows than the system has.
  const int64_t size = left ? a.size(-1) : sides.size(1);
  solve_triangular(block(matrix, 0, size, 0, size), block(sides, 0, size, 0, sides.size(2)), upper, unit);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  at::native::triangular_solve_stub.set_privateuse1_dispatch_ptr(&triangular_solve_kernel);
  COMPOSED(triangular_solve, X);
  native<&at::native::linalg_solve_triangular>(library, "linalg_solve_triangular");
  native<&at::native::linalg_solve_triangular_out>(library, "linalg_solve_triangular.out");
}

}  // namespace
}  // namespace torch_webgpu
