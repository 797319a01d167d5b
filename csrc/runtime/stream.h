// The one ordered queue: dispatches and copies of all threads, recorded in batches, many per submit. The only place
// that encodes or submits. Nothing here waits but read(), synchronize() and events.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/bind_group_cache.h"
#include "runtime/buffer_pool.h"
#include "runtime/device.h"
#include "runtime/kernel_cache.h"

namespace torch_webgpu {

constexpr uint32_t kParamWords = 256;  // what one launch may pass, in 32-bit words

// One dispatch as data: what to run (key, and how to print it on a miss), on what, with which parameters.
struct Launch {
  KernelKey key;
  KernelSource (*print)(const Launch&) = nullptr;
  const void* context = nullptr;  // whatever `print` needs beyond the key, such as a row of a table
  uint32_t grid[3] = {1, 1, 1};
  uint32_t binding_count = 0;
  uint32_t param_words = 0;
  bool windowed = false;  // some binding has a size
  bool reports = false;   // binds status() and takes its reporter's number as the first parameter
  Binding bindings[kMaxBindings];
  uint32_t params[kParamWords];

  Launch() {}  // leaves the arrays as they are: this is on the path of every op
};

struct StreamStats {
  uint64_t dispatches = 0, copies = 0, submits = 0, uploads = 0, readbacks = 0;
  uint64_t bind_group_hits = 0, bind_group_misses = 0, kernels_compiled = 0, kernels_cached = 0;
};

// A point in the stream: complete once all that was recorded before it has run.
class Event {
 public:
  explicit Event(bool timing) : timing(timing) {}
  const bool timing;

 private:
  friend class Stream;
  struct Completion {
    bool done = false;
    double host_time_ms = 0;
  };
  std::shared_ptr<Completion> completion_;  // empty until recorded
  WGPUFuture future_{};
  int query_ = -1;  // slot of the timestamp, where the adapter has them
};

class Stream {
 public:
  Stream(Device& device, KernelCache& kernels);

  void dispatch(const Launch& launch);
  // Offsets and sizes of copies, uploads and readbacks on the device are multiples of 4 bytes; an upload of a size that
  // is not overwrites up to the next multiple.
  void copy(const Buffer& source, uint64_t source_offset, const Buffer& target, uint64_t target_offset,
            uint64_t size_bytes);
  void write(const Buffer& target, uint64_t offset, const void* data, uint64_t size_bytes);
  void read(const Buffer& source, uint64_t offset, void* data, uint64_t size_bytes);
  void flush();
  void synchronize();

  // Where a kernel leaves the first index it finds out of range: {found, reporter, index (low, high), dimension, size}.
  // Whoever waits for the device next gets it as an IndexError.
  const Buffer& status() const { return status_; }
  bool is_idle();

  void record(Event& event);
  bool is_complete(Event& event);
  void wait(Event& event);
  double elapsed_ms(Event& from, Event& to);
  void forget(Event& event) noexcept;

  StreamStats stats();
  // With `dry`, dispatches stop before the first call into WebGPU: what is left is the host's own cost.
  void set_dry(bool dry);

  // The pool creates and destroys through here: the library is not to be called by two threads at once.
  WGPUBuffer create_buffer(const WGPUBufferDescriptor& descriptor);
  void destroy_buffers(const std::vector<WGPUBuffer>& buffers);

 private:
  void open_pass();
  void end_pass();
  WGPUCommandEncoder encoder();
  void submit();
  void submit_writes();
  void wait_for_queue();
  void mark(Event& event);
  void check();
  void read_status();
  void check_status(const uint32_t* words);
  uint32_t reporter(const std::string* label);
  std::string recent_ops() const;
  void reserve_readback(uint64_t size_bytes);
  void read_chunk(const Buffer& source, uint64_t offset, char* data, uint64_t size_bytes);
  void write_timestamp(Event& event);
  void add_queries();

  Device& device_;
  KernelCache& kernels_;
  BindGroupCache groups_;
  std::mutex mutex_;
  const uint32_t batch_size_;
  bool sync_every_op_ = false, dry_ = false;
  StreamStats stats_;

  // The batch being recorded.
  WGPUCommandEncoder encoder_ = nullptr;
  WGPUComputePassEncoder pass_ = nullptr;
  WGPUComputePipeline current_pipeline_ = nullptr;
  WGPUBindGroup current_group_ = nullptr;
  uint32_t recorded_ = 0, next_slot_ = 0;
  uint64_t staged_bytes_ = 0;                    // written since the last submit
  std::array<const std::string*, 16> recent_{};  // labels of the last dispatches, to name them in an error

  // Parameters: one uniform buffer in slots, one fixed bind group per slot. Dynamic offsets cost llvmpipe 10 us each.
  WGPUBuffer ring_ = nullptr;
  std::vector<WGPUBindGroup> slots_;
  std::vector<uint32_t> params_;

  Buffer status_;
  bool may_report_ = false;  // some launch since the last look at the status could have written it
  std::vector<const std::string*> reporters_;

  WGPUBuffer readback_ = nullptr;
  uint64_t readback_size_ = 0;

  std::vector<WGPUQuerySet> queries_;  // of kQueries timestamps each
  WGPUBuffer resolved_ = nullptr;
  std::vector<int> free_queries_;
  double tick_ns_ = 1;
};

}  // namespace torch_webgpu
