#include "ops/tensor/transpose.h"

#include "families/program.h"
#include "families/tensor.h"
#include "families/windows.h"

namespace torch_webgpu {
namespace {

constexpr Program kTranspose = make_grouped(
    make_program("transpose", "transpose", "T:input T:output!",
                 "rows columns input_step output_step inner input_inner output_inner input_outer output_outer", ""));
constexpr int64_t kSide = 32, kLeast = 16;  // of a tile, and of a dimension that is worth it

}  // namespace

bool copy_transposed(const at::TensorIteratorBase& iterator, const at::Tensor& target, const at::Tensor& source) {
  const int rank = iterator.ndim();
  const int64_t bytes = source.element_size();
  if (torch_webgpu::target().software || rank < 2 || rank > 4 || (bytes != 4 && bytes != 8)) return false;
  if (source.is_conj() || source.is_neg() || target.is_conj() || target.is_neg()) return false;
  if (!fits_binding(source) || !fits_binding(target) || buffer_of(source) == buffer_of(target)) return false;
  const auto step = [&](int operand, int dim) { return iterator.strides(operand)[dim] / bytes; };
  int column = -1, row = -1;
  for (int dim = 0; dim < rank; ++dim) {
    if (iterator.shape()[dim] < kLeast) continue;
    if (step(0, dim) == 1) column = dim;
    if (step(1, dim) == 1) row = dim;
  }
  if (column < 0 || row < 0 || column == row) return false;
  int64_t batch_size[2] = {1, 1}, from[2] = {0, 0}, to[2] = {0, 0};
  int batches = 0;
  for (int dim = 0; dim < rank; ++dim) {
    if (dim == column || dim == row) continue;
    batch_size[batches] = iterator.shape()[dim];
    to[batches] = step(0, dim);
    from[batches++] = step(1, dim);
  }
  const int64_t rows = iterator.shape()[row], columns = iterator.shape()[column];
  const int64_t tiles = (rows + kSide - 1) / kSide * ((columns + kSide - 1) / kSide);
  const at::ScalarType word = bytes == 4 ? at::kInt : at::kLong;
  const auto words = [&](const at::Tensor& tensor) {
    return tensor.scalar_type() == word ? tensor : tensor.view(word);
  };
  run(kTranspose, word, {tiles * batch_size[0] * batch_size[1], kSide * kSide}, {words(source), words(target)},
      {rows, columns, step(1, column), step(0, row), batch_size[0], from[0], to[0], from[1], to[1]});
  return true;
}

}  // namespace torch_webgpu
