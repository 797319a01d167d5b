#include "runtime/bind_group_cache.h"

#include <algorithm>

namespace torch_webgpu {

BindGroupCache::BindGroupCache(Device& device, KernelCache& kernels)
    : device_(device), kernels_(kernels), entries_(size_t{kWays} * kSets) {}

WGPUBindGroup BindGroupCache::get(const Binding* bindings, const Signature& signature) {
  const uint32_t count = signature.bindings;
  std::array<uint64_t, kMaxBindings> key;
  uint64_t hash = uint64_t{signature.read_only} << 32 | count;
  for (uint32_t i = 0; i < count; ++i) {
    key[i] = uint64_t{bindings[i].buffer->id} << 32 | bindings[i].window;
    hash = (hash ^ key[i]) * 0x9E3779B97F4A7C15ull;
    hash ^= hash >> 29;
  }
  Entry* set = &entries_[(hash % kSets) * kWays];
  Entry* oldest = set;
  for (Entry* entry = set; entry != set + kWays; ++entry) {
    if (entry->group && entry->count == count && entry->read_only == signature.read_only &&
        std::equal(key.begin(), key.begin() + count, entry->key.begin())) {
      ++hits_;
      entry->last_used = ++tick_;
      return entry->group;
    }
    if (entry->last_used < oldest->last_used) oldest = entry;
  }
  ++misses_;
  if (oldest->group) device_.api.BindGroupRelease(oldest->group);
  *oldest = {create(bindings, signature), count, signature.read_only, ++tick_, key};
  return oldest->group;
}

WGPUBindGroup BindGroupCache::create(const Binding* bindings, const Signature& signature) {
  const uint32_t count = signature.bindings;
  std::array<WGPUBindGroupEntry, kMaxBindings> entries{};
  for (uint32_t i = 0; i < count; ++i) {
    const auto& [buffer, window, size_bytes] = bindings[i];
    entries[i].binding = i;
    entries[i].buffer = buffer->handle;
    entries[i].offset = buffer->offset + window * kWindowBytes;
    entries[i].size = size_bytes ? size_bytes
                                 : std::min(buffer->size_bytes - window * kWindowBytes,
                                            device_.limits.maxStorageBufferBindingSize & ~uint64_t{15});
  }
  WGPUBindGroupDescriptor descriptor{};
  descriptor.layout = kernels_.storage_layout(count, signature.read_only);
  descriptor.entryCount = count;
  descriptor.entries = entries.data();
  return device_.api.DeviceCreateBindGroup(device_.handle, &descriptor);
}

void BindGroupCache::clear() {
  for (auto& entry : entries_) {
    if (entry.group) device_.api.BindGroupRelease(entry.group);
    entry = {};
  }
}

}  // namespace torch_webgpu
