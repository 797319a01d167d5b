#include "device/allocator.h"

#include <c10/core/CachingDeviceAllocator.h>

#include <atomic>

#include "device/context.h"
#include "device/memory_limit.h"
#include "device/number.h"
#include "runtime/error.h"
#include "runtime/system.h"

namespace torch_webgpu {
namespace {

using c10::CachingAllocator::Stat;
using c10::CachingAllocator::StatArray;

void report(const Buffer& buffer, bool allocated) {
  if (!c10::memoryProfilingEnabled()) [[likely]]
    return;
  const PoolStats stats = runtime().pool.stats();
  const auto size = static_cast<int64_t>(buffer.size_bytes);
  c10::reportMemoryUsageToProfiler(buffer.address, allocated ? size : -size, stats.allocated_bytes,
                                   stats.reserved_bytes, kDevice);
}

void set(StatArray& stats, uint64_t current, uint64_t peak, uint64_t allocated, uint64_t freed) {
  Stat& all = stats[static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
  all.current = static_cast<int64_t>(current);
  all.peak = static_cast<int64_t>(peak);
  all.allocated = static_cast<int64_t>(allocated);
  all.freed = static_cast<int64_t>(freed);
}

std::atomic<size_t> memory_limit{0};

void check_limit(size_t size_bytes) {
  const size_t limit = memory_limit;
  if (limit == 0) return;
  const size_t allocated = runtime().pool.stats().allocated_bytes;
  TORCH_CHECK_WITH(OutOfMemoryError, allocated + size_bytes <= limit, "webgpu: tried to allocate ", size_bytes,
                   " bytes, but ", allocated, " of the ", limit,
                   " bytes that set_per_process_memory_fraction() allows are in use");
}

class Allocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t size_bytes) override {
    if (size_bytes == 0) {
      runtime();  // an empty tensor needs a device too
      return {nullptr, kDevice};
    }
    check_limit(size_bytes);
    try {
      Buffer* buffer = runtime().pool.allocate(size_bytes);
      report(*buffer, true);
      return {buffer->address, buffer, &release_buffer, kDevice};
    } catch (const OutOfMemoryError& error) {
      TORCH_CHECK_WITH(OutOfMemoryError, false, error.what());
    }
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }  // the pointer is not the context
  // What copy on write may share: our buffers, whose address is not their context.
  bool is_simple_data_ptr(const c10::DataPtr& data) const override {
    return data.get_deleter() == &release_buffer || data.get() == data.get_context();
  }
  // Copy on write leaves the memory it shares by this.
  void copy_data(void* target, const void* source, std::size_t size_bytes) const override {
    if (size_bytes == 0) return;
    const Buffer *from = find_buffer(source), *to = find_buffer(target);
    runtime().stream.copy(*from, static_cast<const char*>(source) - from->address, *to,
                          static_cast<const char*>(target) - to->address, (size_bytes + 3) & ~size_t{3});
  }

  bool initialized() override { return is_open(); }
  void emptyCache(c10::MempoolId_t) override {
    if (is_open()) runtime().pool.trim();
  }
  void recordStream(const c10::DataPtr&, c10::Stream) override {}  // one stream runs everything in order

  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex) override {
    c10::CachingDeviceAllocator::DeviceStats result;
    if (!is_open()) return result;
    const PoolStats stats = runtime().pool.stats();
    set(result.allocation, stats.live, stats.live_peak, stats.allocations, stats.frees);
    for (auto* bytes : {&result.allocated_bytes, &result.active_bytes, &result.requested_bytes}) {
      set(*bytes, stats.allocated_bytes, stats.allocated_peak, stats.allocated_total, stats.freed_total);
    }
    set(result.reserved_bytes, stats.reserved_bytes, stats.reserved_peak, stats.reserved_bytes, 0);
    result.num_alloc_retries = static_cast<int64_t>(stats.retries);
    result.num_ooms = static_cast<int64_t>(stats.out_of_memory);
    result.num_device_alloc = static_cast<int64_t>(stats.buffers_created);
    return result;
  }
  void resetAccumulatedStats(c10::DeviceIndex) override {
    if (is_open()) runtime().pool.reset_totals();
  }
  void resetPeakStats(c10::DeviceIndex) override {
    if (is_open()) runtime().pool.reset_peaks();
  }
  // WebGPU does not tell how much memory an adapter has. A software or integrated one has the host's.
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex) override {
    const Runtime& here = runtime();
    TORCH_CHECK_NOT_IMPLEMENTED(here.device.info.type != "discrete",
                                "webgpu: WebGPU does not tell the memory of the discrete adapter ",
                                here.device.info.name);
    const auto host = host_memory();
    TORCH_CHECK(host, "webgpu: the host does not tell its memory");
    return {host->free_bytes, host->total_bytes};
  }
};

[[noreturn]] void throw_two_devices(c10::Device first, c10::Device second) {
  TORCH_CHECK(false, "Expected all tensors to be on the same device, but found at least two devices, ", first, " and ",
              second, "!");
}

Allocator* const instance = new Allocator;  // tensors may outlive static destruction
const c10::AllocatorRegisterer<kDeviceType> registered(instance);

}  // namespace

c10::Allocator* allocator() { return instance; }

void set_memory_limit(size_t size_bytes) { memory_limit = size_bytes; }

void release_buffer(void* buffer) {
  if (in_bad_fork()) return;
  report(*static_cast<Buffer*>(buffer), false);
  runtime().pool.release(static_cast<Buffer*>(buffer));
}

const Buffer* find_buffer(const void* address) {
  const Buffer* buffer = runtime().pool.find(address);
  // Memory that is not the device's is the host's: a 0-d tensor that this op cannot take as a number.
  if (!buffer) throw_two_devices(kDevice, at::kCPU);
  write_number(*buffer);
  return buffer;
}

void throw_no_memory(const at::TensorBase& tensor) {
  if (tensor.device() != kDevice) throw_two_devices(kDevice, tensor.device());
  TORCH_CHECK(false, "webgpu: a tensor of shape ", tensor.sizes(), " has no memory: its storage was resized to 0 bytes",
              OpScope::suffix());
}

void check_same_device(c10::ArrayRef<const at::Tensor*> tensors) {
  const at::Tensor* first = nullptr;
  for (const at::Tensor* tensor : tensors) {
    if (tensor->dim() == 0 && tensor->is_cpu()) continue;
    if (!first) first = tensor;
    if (tensor->device() != first->device()) throw_two_devices(first->device(), tensor->device());
  }
}

}  // namespace torch_webgpu
