// GPU buffers in size classes, kept for reuse. One queue runs everything in order, so a buffer may be handed out again
// the moment its last owner lets go.
//
// A buffer has a WGPUBuffer of its own, until gather() moves it into a segment: a WGPUBuffer that many small buffers
// share, so that a kernel over many tensors binds them all at once. Its address and its owners do not change.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/device.h"

namespace torch_webgpu {

struct Segment;

struct Buffer {
  WGPUBuffer handle = nullptr;
  uint64_t size_bytes = 0;
  uint32_t id = 0;  // of the place in memory; never reused, unlike handles
  uint32_t size_class = 0;
  char* address = nullptr;  // reserved, never readable: gives every byte of every buffer a pointer of its own
  uint64_t offset = 0;      // where it begins in `handle`
  Segment* segment = nullptr;

  // Under the stream's lock, which guards the place of every buffer.
  void exchange_places(Buffer& other) {
    std::swap(handle, other.handle);
    std::swap(id, other.id);
    std::swap(offset, other.offset);
    std::swap(segment, other.segment);
  }
};

struct Segment {
  Buffer whole;
  uint64_t used_bytes = 0;  // that buffers have been cut from, in use or free
  uint32_t live = 0;        // buffers in use
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
  void trim();  // gives every free buffer, and every segment without buffers in use, back to the driver

  // Moves a buffer into a segment of at most `most_bytes`, with its contents if `keeps_contents`. It stays there until
  // it is released. False, and nothing done, where the buffer is too large, or while a tape is recorded, which names
  // buffers by their places.
  bool gather(Buffer& buffer, uint64_t most_bytes, bool keeps_contents);

  PoolStats stats() const;
  void reset_peaks();
  void reset_totals();

  static uint64_t rounded_size(uint64_t size_bytes);

 private:
  Buffer* take(uint64_t size_bytes);
  [[noreturn]] void throw_out_of_memory(uint64_t size_bytes);
  Buffer* create(uint64_t size_bytes, uint32_t size_class);
  Buffer* take_from_segment(const Buffer& like, uint64_t most_bytes);
  Buffer* create_segment(const Buffer& like, uint64_t most_bytes);
  Buffer* cut(Segment& segment, const Buffer& like);
  void release_in_segment(Buffer* buffer);
  WGPUBuffer create_handle(uint64_t size_bytes);
  void count_reserved(uint64_t size_bytes);
  char* reserve_address(uint64_t size_bytes);

  Device& device_;
  Stream& stream_;
  mutable std::mutex mutex_;
  std::array<std::vector<Buffer*>, 192> free_, free_in_segments_;
  std::vector<std::unique_ptr<Segment>> segments_;
  std::unordered_map<uint64_t, std::vector<char*>> free_addresses_;
  char* next_address_ = nullptr;
  char* end_address_ = nullptr;
  uint32_t next_id_ = 1;
  std::map<const char*, const Buffer*> by_address_;
  PoolStats stats_;
};

}  // namespace torch_webgpu
