#include "device/number.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "device/allocator.h"
#include "device/context.h"

namespace torch_webgpu {
namespace {

// Numbers that are not written yet, by their buffer. Never destroyed: tensors may outlive static destruction.
struct Numbers {
  std::mutex mutex;
  std::unordered_map<const Buffer*, Number> unwritten;
};
Numbers& numbers() {
  static auto* all = new Numbers;
  return *all;
}

void release_number(void* buffer) {
  if (in_bad_fork()) return;
  {
    const std::lock_guard guard(numbers().mutex);
    numbers().unwritten.erase(static_cast<const Buffer*>(buffer));
  }
  release_buffer(buffer);
}

}  // namespace

c10::DataPtr allocate_number(const Number& number) {
  c10::DataPtr data = allocator()->allocate(number.size_bytes);
  {
    const std::lock_guard guard(numbers().mutex);
    numbers().unwritten.emplace(static_cast<const Buffer*>(data.get_context()), number);
  }
  // Every use of this storage goes through find_buffer(), which writes the number first.
  TORCH_INTERNAL_ASSERT(data.compare_exchange_deleter(&release_buffer, &release_number));
  return data;
}

std::optional<Number> number_in(const c10::Storage& storage) {
  const c10::DataPtr& data = storage.data_ptr();
  if (data.get_deleter() != &release_number) [[likely]]
    return std::nullopt;
  const std::lock_guard guard(numbers().mutex);
  const auto found = numbers().unwritten.find(static_cast<const Buffer*>(data.get_context()));
  return found == numbers().unwritten.end() ? std::nullopt : std::optional(found->second);
}

// The lock is held until the stream has the write: another thread that finds the number written may use it.
void write_number(const Buffer& buffer) {
  const std::lock_guard guard(numbers().mutex);
  const auto found = numbers().unwritten.find(&buffer);
  if (found == numbers().unwritten.end()) return;
  runtime().stream.write(buffer, 0, found->second.words, std::max<uint32_t>(found->second.size_bytes, 4));
  numbers().unwritten.erase(found);
}

}  // namespace torch_webgpu
