#include "device/storage.h"

#include <algorithm>

#include "device/allocator.h"
#include "device/context.h"

namespace torch_webgpu {

void resize_storage(c10::StorageImpl& storage, size_t size_bytes) {
  TORCH_CHECK(storage.resizable(), "Trying to resize storage that is not resizable");
  own_memory(storage);
  c10::DataPtr grown = allocator()->allocate(size_bytes);
  const Buffer* source = storage.data_ptr().get() ? find_buffer(storage.data_ptr().get()) : nullptr;
  const auto* target = static_cast<const Buffer*>(grown.get_context());
  if (source && target) {
    const size_t kept = std::min(storage.nbytes(), size_bytes);
    const uint64_t begin = static_cast<const char*>(storage.data_ptr().get()) - source->address;
    runtime().stream.copy(*source, begin, *target, 0, (kept + 3) & ~size_t{3});
  }
  storage.set_data_ptr_noswap(std::move(grown));
  storage.set_nbytes(size_bytes);
}

}  // namespace torch_webgpu
