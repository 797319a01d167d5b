#include "device/layout.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "device/allocator.h"
#include "device/context.h"
#include "device/number.h"

namespace torch_webgpu {
namespace {

// The first argument with each buffer: a hash table, since an optimizer's step has hundreds of them.
class FirstUses {
 public:
  explicit FirstUses(size_t count) : table_(std::bit_ceil(2 * count + 1)) {}
  uint32_t of(const Buffer* buffer, size_t argument) {
    const size_t mask = table_.size() - 1;
    size_t index = (reinterpret_cast<uintptr_t>(buffer) * 0x9E3779B97F4A7C15ull >> 32) & mask;
    while (table_[index].buffer && table_[index].buffer != buffer) index = (index + 1) & mask;
    if (!table_[index].buffer) table_[index] = {buffer, static_cast<uint32_t>(argument)};
    return table_[index].argument;
  }

 private:
  struct Use {
    const Buffer* buffer = nullptr;
    uint32_t argument = 0;
  };
  std::vector<Use> table_;
};

uint64_t large_size_of(const Buffer* buffer) {
  return buffer && buffer->size_bytes > largest_binding() ? buffer->size_bytes : 0;
}

}  // namespace

uint64_t largest_binding() { return runtime().device.limits.maxStorageBufferBindingSize; }

// A number that only the host holds so far goes into parameters instead of a binding: a replay would repeat it.
bool is_plain(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == kDeviceType && tensor.layout() == at::kStrided &&
         !tensor.is_conj() && !tensor.is_neg() && !tensor._is_zerotensor() && !number_in(tensor.storage());
}

bool is_host_number(const at::Tensor& tensor) {
  return tensor.is_cpu() && tensor.dim() == 0 && tensor.layout() == at::kStrided && tensor.element_size() <= 8;
}

int64_t bits_of(const at::Tensor& number) {
  int64_t bits = 0;
  std::memcpy(&bits, number.const_data_ptr(), number.element_size());
  return bits;
}

const Buffer* buffer_if_any(const at::Tensor* tensor) {
  return tensor && !tensor->is_cpu() ? buffer_of(*tensor) : nullptr;
}

std::optional<Layout> Layout::of(const Arguments& arguments) {
  Layout layout;
  FirstUses first(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto& [tensor, number] = arguments[i];
    if (!tensor) {
      layout.entries_.push_back({Entry::number, at::ScalarType::Undefined, 0, 0, number, {}});
      continue;
    }
    if (is_host_number(*tensor)) {
      layout.entries_.push_back({Entry::host_number, tensor->scalar_type(), 0, 0, bits_of(*tensor), {}});
      continue;
    }
    if (!is_plain(*tensor)) return std::nullopt;
    const Buffer* buffer = buffer_of(*tensor);
    Entry entry{Entry::tensor,         tensor->scalar_type(),    buffer ? first.of(buffer, i) : 0,
                large_size_of(buffer), tensor->storage_offset(), {}};
    entry.sizes_and_strides.append(tensor->sizes().begin(), tensor->sizes().end());
    entry.sizes_and_strides.append(tensor->strides().begin(), tensor->strides().end());
    layout.entries_.push_back(std::move(entry));
  }
  return layout;
}

void Layout::allow_any_value(uint32_t argument) { entries_[argument].kind = Entry::any_host_number; }

bool Layout::has_host_numbers() const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [](const Entry& entry) { return entry.kind == Entry::host_number; });
}

bool Layout::holds(const Arguments& arguments) const {
  if (arguments.size() != entries_.size()) return false;
  FirstUses first(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto& [tensor, number] = arguments[i];
    const Entry& entry = entries_[i];
    if (!tensor) {
      if (entry.kind != Entry::number || number != entry.value) return false;
      continue;
    }
    if (entry.kind == Entry::host_number || entry.kind == Entry::any_host_number) {
      if (!is_host_number(*tensor) || tensor->scalar_type() != entry.dtype) return false;
      if (entry.kind == Entry::host_number && bits_of(*tensor) != entry.value) return false;
      continue;
    }
    if (entry.kind != Entry::tensor) return false;
    const auto sizes = tensor->sizes(), strides = tensor->strides();
    const size_t rank = sizes.size();
    if (tensor->scalar_type() != entry.dtype || tensor->storage_offset() != entry.value ||
        2 * rank != entry.sizes_and_strides.size() ||
        !std::equal(sizes.begin(), sizes.end(), entry.sizes_and_strides.begin()) ||
        !std::equal(strides.begin(), strides.end(), entry.sizes_and_strides.begin() + static_cast<ptrdiff_t>(rank)) ||
        !is_plain(*tensor)) {
      return false;
    }
    const Buffer* buffer = buffer_of(*tensor);
    if (large_size_of(buffer) != entry.large_size_bytes) return false;
    if (buffer && first.of(buffer, i) != entry.shares_with) return false;
  }
  return true;
}

}  // namespace torch_webgpu
