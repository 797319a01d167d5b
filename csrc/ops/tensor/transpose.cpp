#include "ops/tensor/transpose.h"

#include <algorithm>

#include "families/program.h"
#include "families/tensor.h"
#include "families/windows.h"

namespace torch_webgpu {
namespace {

constexpr const char* kParams =
    "rows columns input_step output_step inner input_inner output_inner input_outer output_outer";
constexpr Program kTranspose = make_grouped(make_program("transpose", "transpose", "T:input T:output!", kParams));
constexpr Program kPacked = make_grouped(make_program("transpose", "transpose_packed", "u:input u:output!", kParams));
constexpr int64_t kSide = 32, kPackedSide = 64, kLeast = 16;  // of a tile, and of a dimension that is worth it

// The words that a tensor's elements lie in; undefined where they do not begin or end with a word.
at::Tensor words_of(const at::Tensor& tensor) {
  const int64_t bytes = tensor.element_size(), begin = tensor.storage_offset() * bytes;
  int64_t last = begin;
  for (int64_t dim = 0; dim < tensor.dim(); ++dim) last += (tensor.size(dim) - 1) * tensor.stride(dim) * bytes;
  const int64_t end = (last + bytes + 3) / 4 * 4;
  if (begin % 4 != 0 || end > static_cast<int64_t>(tensor.storage().nbytes())) return {};
  at::Tensor words = empty_tensor({0}, {}, at::kInt);
  return words.set_(tensor.storage(), begin / 4, {(end - begin) / 4}, {1});
}

}  // namespace

bool copy_transposed(const at::TensorIteratorBase& iterator, const at::Tensor& target, const at::Tensor& source) {
  const int rank = iterator.ndim();
  const int64_t bytes = source.element_size();
  if (torch_webgpu::target().software || rank < 2 || rank > 4 || bytes > 8) return false;
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
  const int64_t side = bytes < 4 ? kPackedSide : kSide;
  const Tasks tiles{(rows + side - 1) / side * ((columns + side - 1) / side) * batch_size[0] * batch_size[1],
                    side * side};
  const int64_t per = std::max<int64_t>(4 / bytes, 1);  // elements of a word
  int64_t steps[] = {step(1, column), step(0, row), from[0], to[0], from[1], to[1]};
  for (int64_t& each : steps) {
    if (each % per != 0) return false;
    each /= per;
  }
  const auto params = {rows, columns, steps[0], steps[1], batch_size[0], steps[2], steps[3], steps[4], steps[5]};
  if (per > 1) {
    const at::Tensor from_words = words_of(source), to_words = words_of(target);
    if (!from_words.defined() || !to_words.defined()) return false;
    run(kPacked, at::kInt, tiles, {from_words, to_words}, params, static_cast<uint32_t>(per));
    return true;
  }
  const at::ScalarType word = bytes == 4 ? at::kInt : at::kLong;
  const auto words = [&](const at::Tensor& tensor) {
    return tensor.scalar_type() == word ? tensor : tensor.view(word);
  };
  run(kTranspose, word, tiles, {words(source), words(target)}, params);
  return true;
}

}  // namespace torch_webgpu
