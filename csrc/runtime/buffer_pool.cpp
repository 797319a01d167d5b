#include "runtime/buffer_pool.h"

#include <algorithm>
#include <bit>

#include "runtime/error.h"
#include "runtime/segments.h"
#include "runtime/stream.h"
#include "runtime/system.h"
#include "runtime/tape.h"

namespace torch_webgpu {
namespace {

constexpr uint64_t kSmallest = 256;
constexpr uint64_t kBindingAlignment = 256;  // that every adapter accepts for the start of a binding
// A segment is as large as all before it together, within these bounds.
constexpr uint64_t kSmallestSegment = uint64_t{1} << 20, kLargestSegment = uint64_t{64} << 20;

uint64_t aligned(uint64_t size_bytes) { return (size_bytes + kBindingAlignment - 1) & ~(kBindingAlignment - 1); }

struct SizeClass {
  uint64_t size_bytes;
  uint32_t index;
};

// Four classes per doubling: at most a quarter is wasted, and every size is a multiple of 64 bytes.
SizeClass size_class(uint64_t size_bytes) {
  if (size_bytes <= kSmallest) return {kSmallest, 0};
  const auto exponent = static_cast<uint32_t>(std::bit_width(size_bytes - 1) - 1);
  const uint64_t base = uint64_t{1} << exponent, step = base / 4;
  const uint64_t steps = (size_bytes - base + step - 1) / step;
  return {base + steps * step, (exponent - 8) * 4 + static_cast<uint32_t>(steps)};
}

}  // namespace

BufferPool::BufferPool(Device& device, Stream& stream) : device_(device), stream_(stream) {
  for (uint64_t size = uint64_t{1} << 42; size >= uint64_t{1} << 32; size >>= 1) {
    next_address_ = reserve_addresses(size);
    if (!next_address_) continue;  // a process with a limit on its address space
    end_address_ = next_address_ + size;
    return;
  }
  throw Error("webgpu: cannot reserve an address range for device memory");
}

uint64_t BufferPool::rounded_size(uint64_t size_bytes) { return size_class(size_bytes).size_bytes; }

Buffer* BufferPool::allocate(uint64_t size_bytes) {
  Buffer* buffer = take(size_bytes);
  if (auto* tape = stream_.recording()) [[unlikely]]
    tape->allocated(*buffer);
  return buffer;
}

Buffer* BufferPool::take(uint64_t size_bytes) {
  device_.throw_if_lost();
  const uint64_t largest = device_.limits.maxBufferSize & ~uint64_t{63};
  if (size_bytes > largest) throw_out_of_memory(size_bytes);
  const auto [class_size, index] = size_class(size_bytes);
  const uint64_t rounded = std::min(class_size, largest);
  const auto account = [&](Buffer* buffer) {
    stats_.allocated_bytes += rounded;
    stats_.allocated_total += rounded;
    stats_.allocated_peak = std::max(stats_.allocated_peak, stats_.allocated_bytes);
    ++stats_.allocations;
    stats_.live_peak = std::max(stats_.live_peak, ++stats_.live);
    return buffer;
  };
  {
    const std::lock_guard guard(mutex_);
    auto& free = free_[index];
    if (!free.empty()) {
      Buffer* buffer = free.back();
      free.pop_back();
      return account(buffer);
    }
  }
  Buffer* buffer = create(rounded, index);
  if (!buffer) {
    trim();
    buffer = create(rounded, index);
    const std::lock_guard guard(mutex_);
    ++stats_.retries;
  }
  if (!buffer) throw_out_of_memory(size_bytes);
  const std::lock_guard guard(mutex_);
  return account(buffer);
}

void BufferPool::throw_out_of_memory(uint64_t size_bytes) {
  const std::lock_guard guard(mutex_);
  ++stats_.out_of_memory;
  throw OutOfMemoryError("webgpu: out of memory: tried to allocate " + std::to_string(size_bytes) + " bytes" +
                         OpScope::suffix() + "; " + std::to_string(stats_.allocated_bytes) +
                         " bytes are in use, and one buffer of " + device_.info.name + " holds at most " +
                         std::to_string(device_.limits.maxBufferSize) + " bytes");
}

const Buffer* BufferPool::find(const void* address) const {
  const auto* byte = static_cast<const char*>(address);
  const std::lock_guard guard(mutex_);
  auto after = by_address_.upper_bound(byte);
  if (after == by_address_.begin()) return nullptr;
  const Buffer* buffer = (--after)->second;
  return byte < buffer->address + buffer->size_bytes ? buffer : nullptr;
}

WGPUBuffer BufferPool::create_handle(uint64_t size_bytes) {
  WGPUBufferDescriptor descriptor{};
  descriptor.size = size_bytes;
  descriptor.usage = WGPUBufferUsage_Storage | WGPUBufferUsage_CopySrc | WGPUBufferUsage_CopyDst;
  return stream_.create_buffer(descriptor);
}

void BufferPool::count_reserved(uint64_t size_bytes) {
  ++stats_.buffers_created;
  stats_.reserved_bytes += size_bytes;
  stats_.reserved_peak = std::max(stats_.reserved_peak, stats_.reserved_bytes);
}

Buffer* BufferPool::create(uint64_t size_bytes, uint32_t index) {
  WGPUBuffer handle = create_handle(size_bytes);
  if (!handle) return nullptr;
  const std::lock_guard guard(mutex_);
  count_reserved(size_bytes);
  auto* buffer = new Buffer{handle, size_bytes, next_id_++, index, reserve_address(size_bytes)};
  by_address_.emplace(buffer->address, buffer);
  return buffer;
}

char* BufferPool::reserve_address(uint64_t size_bytes) {
  auto& reusable = free_addresses_[size_bytes];
  if (!reusable.empty()) {
    char* address = reusable.back();
    reusable.pop_back();
    return address;
  }
  char* address = next_address_;
  if (size_bytes > static_cast<uint64_t>(end_address_ - address)) throw OutOfMemoryError("webgpu: out of addresses");
  next_address_ += (size_bytes + 255) & ~uint64_t{255};
  return address;
}

void BufferPool::release(Buffer* buffer) noexcept {
  const std::lock_guard guard(mutex_);
  stats_.allocated_bytes -= buffer->size_bytes;
  stats_.freed_total += buffer->size_bytes;
  ++stats_.frees;
  --stats_.live;
  buffer->segment ? release_in_segment(buffer) : free_[buffer->size_class].push_back(buffer);
}

// Kept apart from the other free buffers: kernels in general write to buffers whose WGPUBuffer they do not read.
void BufferPool::release_in_segment(Buffer* buffer) {
  --buffer->segment->live;
  free_in_segments_[buffer->size_class].push_back(buffer);
}

bool BufferPool::gather(Buffer& buffer, uint64_t most_bytes, bool keeps_contents) {
  if (buffer.segment) return true;
  if (buffer.size_bytes > std::min(kMostGathered, most_bytes)) return false;
  Buffer* place = take_from_segment(buffer, most_bytes);
  if (!place) return false;
  const bool moved = stream_.move(buffer, *place, keeps_contents);
  const std::lock_guard guard(mutex_);
  moved ? free_[place->size_class].push_back(place) : release_in_segment(place);
  return moved;
}

Buffer* BufferPool::take_from_segment(const Buffer& like, uint64_t most_bytes) {
  {
    const std::lock_guard guard(mutex_);
    auto& free = free_in_segments_[like.size_class];
    if (!free.empty()) {
      Buffer* place = free.back();
      free.pop_back();
      ++place->segment->live;
      return place;
    }
    if (!segments_.empty()) {
      Segment& last = *segments_.back();
      if (last.used_bytes + aligned(like.size_bytes) <= last.whole.size_bytes) return cut(last, like);
    }
  }
  return create_segment(like, most_bytes);
}

Buffer* BufferPool::cut(Segment& segment, const Buffer& like) {
  const Buffer& whole = segment.whole;
  char* address = reserve_address(like.size_bytes);
  auto* place =
      new Buffer{whole.handle, like.size_bytes, next_id_++, like.size_class, address, segment.used_bytes, &segment};
  segment.used_bytes += aligned(like.size_bytes);
  ++segment.live;
  by_address_.emplace(place->address, place);
  return place;
}

// And cuts the first buffer from it.
Buffer* BufferPool::create_segment(const Buffer& like, uint64_t most_bytes) {
  uint64_t size_bytes = 0;
  {
    const std::lock_guard guard(mutex_);
    for (const auto& segment : segments_) size_bytes += segment->whole.size_bytes;
  }
  const uint64_t most = std::min({kLargestSegment, most_bytes, device_.limits.maxStorageBufferBindingSize});
  size_bytes = std::clamp(size_bytes, std::min(kSmallestSegment, most), most) & ~(kBindingAlignment - 1);
  size_bytes = std::max(size_bytes, aligned(like.size_bytes));
  if (size_bytes > most) return nullptr;
  auto* handle = create_handle(size_bytes);
  if (!handle) return nullptr;
  const std::lock_guard guard(mutex_);
  count_reserved(size_bytes);
  auto segment = std::make_unique<Segment>();
  segment->whole.handle = handle;
  segment->whole.size_bytes = size_bytes;
  segment->whole.id = next_id_++;
  segments_.push_back(std::move(segment));
  return cut(*segments_.back(), like);
}

void BufferPool::trim() {
  device_.throw_if_lost();
  std::vector<Buffer*> unused;
  std::vector<std::unique_ptr<Segment>> empty;
  {
    const std::lock_guard guard(mutex_);
    for (auto& free : free_) {
      unused.insert(unused.end(), free.begin(), free.end());
      free.clear();
    }
    const auto take = [&](Buffer* buffer) {
      if (buffer->segment->live == 0) unused.push_back(buffer);
      return buffer->segment->live == 0;
    };
    for (auto& free : free_in_segments_) std::erase_if(free, take);
    for (auto& segment : segments_) {
      if (segment->live == 0) empty.push_back(std::move(segment));
    }
    std::erase(segments_, nullptr);
  }
  std::vector<WGPUBuffer> handles;
  handles.reserve(unused.size());
  for (const auto* buffer : unused) {
    if (!buffer->segment) handles.push_back(buffer->handle);
  }
  for (const auto& segment : empty) handles.push_back(segment->whole.handle);
  stream_.destroy_buffers(handles);
  const std::lock_guard guard(mutex_);
  for (auto* buffer : unused) {
    if (!buffer->segment) stats_.reserved_bytes -= buffer->size_bytes;
    free_addresses_[buffer->size_bytes].push_back(buffer->address);
    by_address_.erase(buffer->address);
    delete buffer;
  }
  for (const auto& segment : empty) stats_.reserved_bytes -= segment->whole.size_bytes;
}

PoolStats BufferPool::stats() const {
  const std::lock_guard guard(mutex_);
  return stats_;
}

void BufferPool::reset_peaks() {
  const std::lock_guard guard(mutex_);
  stats_.allocated_peak = stats_.allocated_bytes;
  stats_.reserved_peak = stats_.reserved_bytes;
  stats_.live_peak = stats_.live;
}

void BufferPool::reset_totals() {
  const std::lock_guard guard(mutex_);
  stats_.allocated_total = stats_.freed_total = stats_.allocations = stats_.frees = 0;
  stats_.retries = stats_.out_of_memory = 0;
}

}  // namespace torch_webgpu
