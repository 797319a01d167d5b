// The one ordered queue: dispatches and copies of all threads, recorded in batches, many per submit. The only place
// that encodes or submits. Nothing here waits but read(), synchronize() and events, except where memory is short.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/batch.h"
#include "runtime/bind_group_cache.h"
#include "runtime/buffer_pool.h"
#include "runtime/deferred.h"
#include "runtime/device.h"
#include "runtime/event.h"
#include "runtime/kernel_cache.h"
#include "runtime/launch.h"
#include "runtime/readback.h"

namespace torch_webgpu {

class Profile;
class Tape;

struct StreamStats {
  uint64_t dispatches = 0, copies = 0, submits = 0, uploads = 0, readbacks = 0;
  uint64_t bind_group_hits = 0, bind_group_misses = 0, kernels_compiled = 0, kernels_cached = 0, kernel_bytes = 0;
};

class Stream {
 public:
  Stream(Device& device, KernelCache& kernels);

  void dispatch(const Launch& launch);
  void prepare(const Launch& launch);  // waits for its kernel, and throws what is wrong with it
  // Offsets and sizes of copies, uploads and readbacks on the device are multiples of 4 bytes; an upload of a size that
  // is not overwrites up to the next multiple.
  void copy(const Buffer& source, uint64_t source_offset, const Buffer& target, uint64_t target_offset,
            uint64_t size_bytes);
  void write(const Buffer& target, uint64_t offset, const void* data, uint64_t size_bytes);
  void read(const Buffer& source, uint64_t offset, void* data, uint64_t size_bytes);
  void flush();
  void synchronize();

  // From now on, all that this thread gives to the device also goes onto the tape. False when a thread records already.
  bool record_to(Tape& tape);
  void stop_recording();
  // The tape that this thread records to, or null.
  Tape* recording() const {
    return tape_.load(std::memory_order_relaxed) && recorder_ == std::this_thread::get_id() ? tape_.load() : nullptr;
  }
  // Runs the tape with a buffer per slot, under one lock. `randoms` are where the numbers of each source begin this
  // time; a tape without random numbers needs none.
  void replay(const Tape& tape, const Buffer* const* slots, const RandomStart* randoms = nullptr);

  // Where a kernel leaves the first index it finds out of range: {found, reporter, index (low, high), dimension, size}.
  // Whoever waits for the device next gets it as an IndexError.
  const Buffer& status() const { return status_; }
  static constexpr uint64_t kStatusBytes = 32;
  bool is_idle();

  void record(Event& event);
  bool is_complete(Event& event);
  void wait(Event& event);
  double elapsed_ms(Event& from, Event& to);
  void forget(Event& event) noexcept;

  // Called about ten times a second by whoever waits for the device, without the stream's lock. What it throws ends the
  // wait; the work goes on. wgpu-native has no wait with an end, so there it is not called.
  static void set_interrupt(void (*check)());
  void lose_device();  // behaves as if the adapter was unplugged; for tests

  StreamStats stats();
  // With `dry`, dispatches stop before the first call into WebGPU: what is left is the host's own cost.
  void set_dry(bool dry);

  // The pool creates and destroys through here. Of several threads that call the library at once, one may encode.
  WGPUBuffer create_buffer(const WGPUBufferDescriptor& descriptor);
  void destroy_buffers(const std::vector<WGPUBuffer>& buffers);
  // The buffers exchange their places; `buffer` keeps its contents if told to. False while a tape is recorded.
  bool move(Buffer& buffer, Buffer& place, bool keeps_contents);

 private:
  // Encodes a launch, or puts it aside until its kernel is compiled.
  void place(const std::shared_ptr<Kernel>& kernel, const DispatchView& dispatch);
  void encode(const Kernel& kernel, const DispatchView& dispatch, Profile* profile);
  void place_copy(const DeferredCopy& copy);
  void finish_op(const std::string& name);
  void write_now(const Buffer& target, uint64_t offset, const char* bytes, uint64_t size_bytes);

  // Deferred launches and copies, in deferred.cpp.
  bool is_in_order();  // whether all that came before has been encoded
  void put_aside(Deferred&& deferred);
  void run_ready();
  void settle();
  void run_first();
  void run(const DeferredLaunch& launch);
  void run(const DeferredCopy& copy);
  void run(const DeferredWrite& write);
  void run(const DeferredSubmit& submit);
  void drop_if_lost();
  bool wants_kernels_at_once() const;
  void finish(Kernel& kernel);
  void throw_failed_kernels();

  WGPUBindGroup several_uniforms(uint32_t count);
  WGPUBindGroup bind_apart(const Binding* bindings, const Signature& signature);
  void reserve_scratch(uint64_t size_bytes);
  void encode_copy(WGPUBuffer source, uint64_t source_offset, WGPUBuffer target, uint64_t target_offset,
                   uint64_t size_bytes);
  void open_pass();
  void end_pass();
  WGPUCommandEncoder encoder();
  void submit();
  void submit_writes();
  void wait_for_queue(bool may_interrupt = true);
  void wait(WGPUFuture future, const bool& done);
  void mark(const std::shared_ptr<Event::Completion>& event);
  void check();
  void read_status();
  void check_status(const uint32_t* words);
  uint32_t reporter(const std::string* label);
  std::string recent_ops() const;

  // Copies to the host, in readback.cpp.
  void read_now(const Buffer& source, uint64_t offset, void* data, uint64_t size_bytes);
  Readback begin_readback(const Buffer& source, uint64_t offset, char* data, uint64_t size_bytes);
  void finish(Readback& readback);
  int take_query();
  void write_timestamp(int query);
  void add_queries();

  Device& device_;
  KernelCache& kernels_;
  BindGroupCache groups_;
  std::mutex mutex_;
  BatchLimit batch_;
  bool sync_every_op_ = false, dry_ = false;
  StreamStats stats_;
  std::atomic<Tape*> tape_{nullptr};  // the tape that the thread `recorder_` records to
  std::thread::id recorder_;

  std::deque<Deferred> aside_;               // begins with a launch whose kernel was not compiled when last looked at
  uint64_t taken_ = 0;                       // how many have left it
  uint64_t bytes_aside_ = 0;                 // total size of the deferred writes
  std::vector<std::string> failed_kernels_;  // error messages to raise at the next wait

  // The batch being recorded.
  WGPUCommandEncoder encoder_ = nullptr;
  WGPUComputePassEncoder pass_ = nullptr;
  uint64_t current_kernel_ = 0;  // its id
  WGPUBindGroup current_group_ = nullptr;
  uint32_t next_slot_ = 0;
  uint64_t staged_bytes_ = 0;                    // written since the last submit
  std::array<const std::string*, 16> recent_{};  // labels of the last dispatches, to name them in an error

  // Parameters: one uniform buffer in slots, one fixed bind group per slot. Dynamic offsets cost llvmpipe 10 us each.
  WGPUBuffer ring_ = nullptr;
  std::vector<WGPUBindGroup> slots_;
  std::vector<uint32_t> params_;

  Buffer status_;
  bool may_report_ = false;  // some launch since the last look at the status could have written it
  std::vector<const std::string*> reporters_;

  Buffer scratch_;  // takes copies of what a launch or a copy may not read where it lies; see segments.cpp

  std::vector<StagingBuffer> staging_;  // those that no readback has taken

  std::vector<WGPUQuerySet> queries_;  // each holds kQueries timestamps
  WGPUBuffer resolved_ = nullptr;
  std::vector<int> free_queries_;
  double tick_ns_ = 1;
};

}  // namespace torch_webgpu
