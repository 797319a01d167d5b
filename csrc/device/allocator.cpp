#include "device/allocator.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <sys/sysinfo.h>

#include "device/context.h"
#include "runtime/error.h"

namespace torch_webgpu {
namespace {

using c10::CachingAllocator::Stat;
using c10::CachingAllocator::StatArray;

void set(StatArray& stats, uint64_t current, uint64_t peak, uint64_t allocated, uint64_t freed) {
  Stat& all = stats[static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
  all.current = static_cast<int64_t>(current);
  all.peak = static_cast<int64_t>(peak);
  all.allocated = static_cast<int64_t>(allocated);
  all.freed = static_cast<int64_t>(freed);
}

class Allocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t size_bytes) override {
    if (size_bytes == 0) {
      runtime();  // an empty tensor needs a device too
      return {nullptr, kDevice};
    }
    try {
      Buffer* buffer = runtime().pool.allocate(size_bytes);
      return {buffer->address, buffer, &release_buffer, kDevice};
    } catch (const OutOfMemoryError& error) {
      TORCH_CHECK_WITH(OutOfMemoryError, false, error.what());
    }
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }  // the pointer is not the context
  void copy_data(void*, const void*, std::size_t) const override {
    TORCH_CHECK(false, "webgpu: device memory has no host address to copy through");
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
    struct sysinfo host{};
    TORCH_CHECK(sysinfo(&host) == 0, "webgpu: the host does not tell its memory");
    return {size_t{host.freeram} * host.mem_unit, size_t{host.totalram} * host.mem_unit};
  }
};

Allocator* const instance = new Allocator;  // tensors may outlive static destruction
const c10::AllocatorRegisterer<kDeviceType> registered(instance);

}  // namespace

c10::Allocator* allocator() { return instance; }

void release_buffer(void* buffer) {
  if (!in_bad_fork()) runtime().pool.release(static_cast<Buffer*>(buffer));
}

const Buffer* find_buffer(const void* address) {
  const Buffer* buffer = runtime().pool.find(address);
  TORCH_CHECK(buffer, "webgpu: the storage's memory does not belong to the device");
  return buffer;
}

}  // namespace torch_webgpu
