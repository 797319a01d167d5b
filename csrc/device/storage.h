// A storage's memory: growing and shrinking in place, and leaving what is shared by copy on write.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/impl/COW.h>

#include "device/allocator.h"

namespace torch_webgpu {

void resize_storage(c10::StorageImpl& storage, size_t size_bytes);  // keeps what fits

// Called before a write: a storage that torch._lazy_clone() shares gets memory of its own.
inline void own_memory(c10::StorageImpl& storage) {
  const c10::DataPtr& data = storage.data_ptr();
  if (data.get_deleter() == &release_buffer) [[likely]]
    return;
  // Copies what is shared, and forgets that it was.
  if (c10::impl::cow::is_cow_data_ptr(data)) storage.mutable_data_ptr();
}
inline void own_memory(const at::Tensor& tensor) {
  if (tensor.defined() && tensor.has_storage()) own_memory(*tensor.storage().unsafeGetStorageImpl());
}

}  // namespace torch_webgpu
