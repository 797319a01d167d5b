// From a row, an iteration space and operands to a launch: the one launcher of ops that reach elements by computed
// places.
#pragma once
#include <ATen/TensorIterator.h>
#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include "families/launch.h"
#include "shader/indexed.h"

namespace torch_webgpu {

class Indexed {
 public:
  // Typed rows compute in `compute`; raw ones take no notice of it.
  explicit Indexed(const IndexedRow& row, at::ScalarType compute = at::kInt);

  // The iteration space and the operands of an iterator. Its last operands are indices; tell what they index by
  // index().
  Indexed& iterate(const at::TensorIteratorBase& iterator);
  // Or by hand: sizes outermost first, and operands with a stride for each, in elements.
  Indexed& iterate(at::IntArrayRef sizes);
  Indexed& operand(const at::Tensor& tensor, at::IntArrayRef strides, int64_t offset = 0);
  Indexed& operand_bits(const at::Tensor& tensor, at::IntArrayRef strides);  // taken as bits in a typed row too
  Indexed& index(const at::Tensor& tensor, at::IntArrayRef strides, int64_t size, int64_t stride, int64_t dimension);

  Indexed& index(int64_t size, int64_t stride, int64_t dimension);
  // Words for x(0u), x(1u), ...
  Indexed& extra(int64_t word);
  Indexed& scalar(const at::Scalar& value, at::ScalarType dtype);  // two words, in the compute type of `dtype`
  Indexed& bits(const at::Scalar& value, at::ScalarType dtype);    // two or four words, as they lie in memory

  void run();

 private:
  struct Operand {
    const Buffer* buffer;
    uint64_t storage_bytes;
    Element element;
    int64_t offset;
    c10::SmallVector<int64_t, 6> strides;  // innermost first
  };
  struct Target {
    int64_t size, stride, dimension;
  };

  Indexed& add(const at::TensorBase& tensor, Element element, at::IntArrayRef strides, int64_t offset);
  void merge();
  void widen();
  bool is_dense(const Operand& operand) const;
  int64_t steps() const;
  uint64_t bytes_moved() const;

  const IndexedRow& row_;
  const at::ScalarType compute_;
  c10::SmallVector<int64_t, 6> sizes_;  // innermost first
  c10::SmallVector<Operand, 4> operands_;
  c10::SmallVector<Target, 4> targets_;
  c10::SmallVector<uint32_t, 8> extra_;
};

// Strides of a tensor of these sizes that lies densely in memory.
c10::SmallVector<int64_t, 6> dense_strides(at::IntArrayRef sizes);

// A scalar as a vector of one: dimensions to index along.
inline at::Tensor at_least_1d(const at::Tensor& tensor) { return tensor.dim() == 0 ? tensor.unsqueeze(0) : tensor; }

}  // namespace torch_webgpu
