// PyTorch's view of the buffer pool.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>

#include "runtime/buffer_pool.h"

namespace torch_webgpu {

c10::Allocator* allocator();

void release_buffer(void* buffer);
const Buffer* find_buffer(const void* address);

// The buffer behind a storage, null when it is empty. PyTorch makes storages of its own around our addresses (pickling
// does, through from_blob); their context is not a buffer.
inline const Buffer* buffer_of(const c10::Storage& storage) {
  const c10::DataPtr& data = storage.data_ptr();
  if (data.get_deleter() == &release_buffer || !data.get()) [[likely]]
    return static_cast<const Buffer*>(data.get_context());
  return find_buffer(data.get());
}

// Throws for tensors of two devices. A 0-d tensor of the host counts for none: an op that takes it as a number does so
// without its buffer, and one that asks for the buffer gets the same error.
void check_same_device(c10::ArrayRef<const at::Tensor*> tensors);

[[noreturn]] void throw_no_memory(const at::TensorBase& tensor);  // for one with elements

inline const Buffer* buffer_of(const at::TensorBase& tensor) {
  const Buffer* buffer = buffer_of(tensor.unsafeGetTensorImpl()->unsafe_storage());
  if (!buffer && tensor.numel() > 0) [[unlikely]]
    throw_no_memory(tensor);
  return buffer;
}

}  // namespace torch_webgpu
