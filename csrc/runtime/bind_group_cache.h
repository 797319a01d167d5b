// Bind groups of storage buffers by exact key, in a table of fixed size.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "runtime/buffer_pool.h"
#include "runtime/kernel_cache.h"

namespace torch_webgpu {

constexpr uint64_t kWindowBytes = 256;  // the alignment every adapter accepts for the start of a binding

// A buffer as a kernel sees it: whole, or from `window` * 256 bytes on when it is larger than one binding may be.
struct Binding {
  const Buffer* buffer;
  uint32_t window;
  uint64_t size_bytes;  // 0: as much as there is
};

class BindGroupCache {
 public:
  BindGroupCache(Device& device, KernelCache& kernels);

  WGPUBindGroup get(const Binding* bindings, const Signature& signature);
  // Not kept: for bindings with a size, which are rare and on large work.
  WGPUBindGroup create(const Binding* bindings, const Signature& signature);
  void clear();  // releases all groups: they would keep buffers alive that the pool destroys

  uint64_t hits() const { return hits_; }
  uint64_t misses() const { return misses_; }

 private:
  static constexpr uint32_t kWays = 4, kSets = 4096;
  struct Entry {
    WGPUBindGroup group = nullptr;
    uint32_t count = 0, read_only = 0;
    uint64_t last_used = 0;
    std::array<uint64_t, kMaxBindings> key;
  };

  Device& device_;
  KernelCache& kernels_;
  std::vector<Entry> entries_;
  uint64_t tick_ = 0, hits_ = 0, misses_ = 0;
};

}  // namespace torch_webgpu
