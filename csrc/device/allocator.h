// PyTorch's view of the buffer pool.
#pragma once
#include <ATen/core/TensorBase.h>
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

inline const Buffer* buffer_of(const at::TensorBase& tensor) {
  return buffer_of(tensor.unsafeGetTensorImpl()->unsafe_storage());
}

}  // namespace torch_webgpu
