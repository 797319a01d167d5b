// PyTorch's view of the buffer pool.
#pragma once
#include <ATen/core/TensorBase.h>
#include <c10/core/Allocator.h>

#include "runtime/buffer_pool.h"

namespace torch_webgpu {

c10::Allocator* allocator();

// The buffer behind a tensor, null when its storage is empty.
inline const Buffer* buffer_of(const at::TensorBase& tensor) {
  return static_cast<const Buffer*>(tensor.unsafeGetTensorImpl()->unsafe_storage().data_ptr().get_context());
}

}  // namespace torch_webgpu
