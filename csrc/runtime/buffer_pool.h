// GPU buffers in size classes, kept for reuse. One queue runs everything in order, so a buffer may be handed out again
// the moment its last owner lets go.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "runtime/device.h"

namespace torch_webgpu {

struct Buffer {
  WGPUBuffer handle = nullptr;
  uint64_t size_bytes = 0;
  uint32_t id = 0;  // never reused, unlike handles
  uint32_t size_class = 0;
  char* address = nullptr;  // reserved, never readable: gives every byte of every buffer a pointer of its own
};

struct PoolStats {
  uint64_t allocated_bytes = 0, allocated_peak = 0, allocated_total = 0, freed_total = 0;
  uint64_t reserved_bytes = 0, reserved_peak = 0;
  uint64_t live = 0, live_peak = 0, allocations = 0, frees = 0, buffers_created = 0, retries = 0, out_of_memory = 0;
};

class Stream;

class BufferPool {
 public:
  BufferPool(Device& device, Stream& stream);

  Buffer* allocate(uint64_t size_bytes);  // throws OutOfMemoryError
  // The buffer that holds an address, for pointers that come without it; null when none does.
  const Buffer* find(const void* address) const;
  void release(Buffer* buffer) noexcept;
  void trim();  // gives every free buffer back to the driver

  PoolStats stats() const;
  void reset_peaks();
  void reset_totals();

  static uint64_t rounded_size(uint64_t size_bytes);

 private:
  Buffer* take(uint64_t size_bytes);
  [[noreturn]] void throw_out_of_memory(uint64_t size_bytes);
  Buffer* create(uint64_t size_bytes, uint32_t size_class);
  char* reserve_address(uint64_t size_bytes);

  Device& device_;
  Stream& stream_;
  mutable std::mutex mutex_;
  std::array<std::vector<Buffer*>, 192> free_;
  std::unordered_map<uint64_t, std::vector<char*>> free_addresses_;
  char* next_address_ = nullptr;
  char* end_address_ = nullptr;
  uint32_t next_id_ = 1;
  std::map<const char*, const Buffer*> by_address_;
  PoolStats stats_;
};

}  // namespace torch_webgpu
