// A point in the stream that a thread can wait for and that can be timed.
#pragma once
#include <webgpu.h>

#include <memory>

namespace torch_webgpu {

// A point in the stream: complete once all that was recorded before it has run.
class Event {
 public:
  explicit Event(bool timing) : timing(timing) {}
  const bool timing;

 private:
  friend class Stream;
  friend struct DeferredSubmit;
  struct Completion {
    WGPUFuture future{};
    bool marked = false;  // has its place among what was submitted, and a future
    bool done = false;
    double host_time_ms = 0;
  };
  std::shared_ptr<Completion> completion_;  // empty until recorded
  int query_ = -1;                          // index of the timestamp query; -1 without one
};

}  // namespace torch_webgpu
