// The items that the stream defers while an earlier launch waits for its kernel, as data.
#pragma once
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "runtime/event.h"
#include "runtime/launch.h"

namespace torch_webgpu {

struct DeferredLaunch {
  std::shared_ptr<Kernel> kernel;
  std::vector<Binding> bindings;
  std::vector<uint32_t> params;
  uint32_t grid[3];
  bool windowed, reports;
  uint64_t bytes, flops;
};

struct DeferredCopy {
  const Buffer* source;
  uint64_t source_offset;
  const Buffer* target;
  uint64_t target_offset, size_bytes;
};

struct DeferredWrite {
  const Buffer* target;
  uint64_t offset;
  std::vector<char> bytes;
};

// Everything before it goes to the device; then the event is marked, if there is one.
struct DeferredSubmit {
  std::shared_ptr<Event::Completion> event;
  int query;
};

using Deferred = std::variant<DeferredLaunch, DeferredCopy, DeferredWrite, DeferredSubmit>;

}  // namespace torch_webgpu
