// WebGPU uploads by copying into memory of its own at the call, so plain host memory is as good as pinned memory gets,
// and may be reused at once. The allocator remembers what it gave, for `is_pinned()`.
#include "device/host_allocator.h"

#include <c10/core/impl/alloc_cpu.h>

#include <map>
#include <mutex>

#include "device/context.h"

namespace torch_webgpu {
namespace {

class HostAllocator final : public at::HostAllocator {
 public:
  c10::DataPtr allocate(size_t size_bytes) override {
    if (size_bytes == 0) return {nullptr, c10::kCPU};
    void* data = c10::alloc_cpu(size_bytes);
    const std::lock_guard guard(mutex_);
    ends_[static_cast<const char*>(data)] = static_cast<const char*>(data) + size_bytes;
    stats_.active_requests.increase(1);
    stats_.active_bytes.increase(size_bytes);
    stats_.allocations.increase(1);
    stats_.allocated_bytes.increase(size_bytes);
    return {data, data, &release, c10::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* target, const void* source, std::size_t size_bytes) const override {
    default_copy_data(target, source, size_bytes);
  }

  bool record_event(void*, void*, c10::Stream) override { return true; }  // nothing reads it later
  void empty_cache() override {}
  at::HostStats get_stats() override {
    const std::lock_guard guard(mutex_);
    return stats_;
  }
  void reset_accumulated_stats() override { each_stat(&c10::CachingAllocator::Stat::reset_accumulated); }
  void reset_peak_stats() override { each_stat(&c10::CachingAllocator::Stat::reset_peak); }

  bool owns(const void* data) {
    const std::lock_guard guard(mutex_);
    const auto after = ends_.upper_bound(static_cast<const char*>(data));
    return after != ends_.begin() && data < std::prev(after)->second;
  }

 private:
  static void release(void* data);

  void forget(void* data) {
    const std::lock_guard guard(mutex_);
    const auto found = ends_.find(static_cast<const char*>(data));
    const auto size_bytes = static_cast<size_t>(found->second - found->first);
    stats_.active_requests.decrease(1);
    stats_.active_bytes.decrease(size_bytes);
    stats_.allocations.decrease(1);
    stats_.allocated_bytes.decrease(size_bytes);
    ends_.erase(found);
  }

  void each_stat(void (c10::CachingAllocator::Stat::*change)()) {
    const std::lock_guard guard(mutex_);
    for (auto* stat : {&stats_.active_requests, &stats_.active_bytes, &stats_.allocations, &stats_.allocated_bytes}) {
      (stat->*change)();
    }
  }

  std::mutex mutex_;
  std::map<const char*, const char*> ends_;  // where each allocation begins and ends
  at::HostStats stats_;
};

HostAllocator* const instance = new HostAllocator;  // tensors may outlive static destruction
const at::HostAllocatorRegistry<kDeviceType> registered(instance);

void HostAllocator::release(void* data) {
  instance->forget(data);
  c10::free_cpu(data);
}

}  // namespace

at::HostAllocator* host_allocator() { return instance; }

bool is_pinned(const void* data) { return instance->owns(data); }

}  // namespace torch_webgpu
