// Growing and shrinking a storage in place.
#pragma once
#include <c10/core/StorageImpl.h>

namespace torch_webgpu {

void resize_storage(c10::StorageImpl& storage, size_t size_bytes);  // keeps what fits

}  // namespace torch_webgpu
