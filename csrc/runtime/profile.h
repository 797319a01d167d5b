// The cost of each dispatch: device timestamps around it, and host time. One profile in a process at a time.
//
// While it runs, every dispatch gets a compute pass of its own, since timestamps are written where passes begin and
// end.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "runtime/bind_group_cache.h"
#include "runtime/kernel_cache.h"

namespace torch_webgpu {

class Stream;

class Profile {
 public:
  struct Dispatch {
    const std::string* label;  // the kernel's
    const std::string* op;     // the ATen op that dispatched it; empty if unknown
    uint32_t grid[3];
    uint64_t bytes;        // that the operands span; 0 if unknown
    uint64_t correlation;  // the id that the dispatching thread had set
    uint64_t thread;
    int64_t host_begin_ns, host_ns;      // the recording of the dispatch, by std::chrono::steady_clock
    int64_t device_begin_ns, device_ns;  // by the same clock; device_ns is -1 without timestamps
  };

  Profile() = default;
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  void start();  // throws an Error when another one runs
  // Waits for what was dispatched since. The stream is the one that ran it, or null if there was none.
  void stop(Stream* stream);

  const std::vector<Dispatch>& dispatches() const { return dispatches_; }
  bool has_device_times() const { return has_device_times_; }

  // An id that this thread's dispatches carry from now on, to tell later which operation they belong to.
  static void set_correlation(uint64_t id) { correlation_ = id; }

  // Whether some profile times dispatches.
  static bool is_recording() { return recording_.load(std::memory_order_relaxed) != nullptr; }

  // For the stream, which holds its lock:

  // The profile that times the dispatches of this device, or null.
  static Profile* recording(Device& device) {
    Profile* profile = recording_.load(std::memory_order_acquire);
    if (!profile) [[likely]]
      return nullptr;
    return profile->follows(device) ? profile : nullptr;
  }
  // The same, but also while it stops.
  static Profile* attached(Device& device) {
    Profile* profile = attached_.load(std::memory_order_acquire);
    if (!profile) [[likely]]
      return nullptr;
    return profile->follows(device) ? profile : nullptr;
  }
  void begin(const Kernel& kernel, uint64_t bytes, const uint32_t* grid);
  // How to begin the pass of the dispatch that has begun; null where it is not timed.
  const WGPUComputePassDescriptor* pass() const { return timed_ ? &pass_ : nullptr; }
  void end();
  // Before the commands of `encoder` are submitted.
  void resolve(WGPUCommandEncoder encoder);

 private:
  struct Page {
    WGPUBuffer buffer;
    uint64_t used;  // timestamps
  };
  // Dispatches of one submit.
  struct Batch {
    size_t first, count;
    size_t page, offset;  // the location of their timestamps
    int64_t submitted_ns;
  };

  bool follows(Device& device);
  void open(Device& device);
  void add_page();
  void read_timestamps(Stream& stream);
  void place_on_the_hosts_clock(const std::vector<std::vector<uint64_t>>& pages);

  static std::atomic<Profile*> recording_, attached_;
  static inline constinit thread_local uint64_t correlation_ = 0;

  Device* device_ = nullptr;  // the device whose stream dispatched first
  WGPUQuerySet queries_ = nullptr;
  WGPUPassTimestampWrites writes_{};
  WGPUComputePassDescriptor pass_{};
  bool timed_ = false, has_device_times_ = false;
  uint32_t pending_ = 0;  // timed since the last submit
  size_t pending_first_ = 0;
  std::vector<Dispatch> dispatches_;
  std::vector<Batch> batches_;
  std::vector<Page> pages_;
  std::unordered_set<std::string> ops_;
};

}  // namespace torch_webgpu
