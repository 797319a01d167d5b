// Bindings of the parts of buffers that operands span, where a buffer is larger than one binding may be. A launcher
// whose operands do not fit halves its work and tries again, or binds what is too large in pages.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/util/ArrayRef.h>

#include <span>

#include "families/launch.h"

namespace torch_webgpu {

struct Part {
  const Buffer* buffer = nullptr;  // null: nothing to bind
  uint64_t begin = 0, end = 0;     // bytes; bound, it begins where its binding does
  uint32_t binding = 0;
};

// All that a tensor spans, whatever its strides.
Part part_of(const at::Tensor& tensor);

// Binds all parts, and counts their bytes as those of the launch; those of one buffer by one binding where they
// overlap. False, with nothing bound, if that is not possible.
bool bind_parts(Launch& launch, std::span<Part> parts);

// The same, but a part that no binding holds takes several, which the kernel sees as the pages of one array: `binding`
// is then the number of the array. An error that names `op` where the adapter binds too few. `reserved` further
// bindings stay free.
void bind_pages(const char* op, Launch& launch, std::span<Part> parts, uint32_t reserved = 0);

// A tensor's offset from where its binding begins, in elements.
inline int64_t offset_in(const Part& part, const at::Tensor& tensor) {
  return tensor.storage_offset() - static_cast<int64_t>(part.begin / tensor.element_size());
}

bool fits_binding(const at::Tensor& tensor);

// The dimension along which a tensor spans most, but for `fixed`; -1 if all others are of one element.
int64_t widest_dim(const at::Tensor& tensor, int64_t fixed = -1);
// The tensor of those given that spans most.
const at::Tensor& widest(at::ArrayRef<at::Tensor> tensors);
// Where to cut a dimension in two, in favour of kernels that take four or more at a time.
int64_t half_of(int64_t size);

// The refusal of what cannot be cut.
[[noreturn]] void throw_too_large(const char* op, const at::Tensor& tensor);

}  // namespace torch_webgpu
