// A copy to the host that is under way.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "runtime/api.h"

namespace torch_webgpu {

// A buffer that the host can map; released with this.
class StagingBuffer {
 public:
  StagingBuffer() = default;
  StagingBuffer(const Api& api, WGPUBuffer handle, uint64_t size_bytes)
      : size_bytes(size_bytes), api_(&api), handle_(handle) {}
  StagingBuffer(StagingBuffer&& other) noexcept { *this = std::move(other); }
  StagingBuffer& operator=(StagingBuffer&& other) noexcept {
    std::swap(size_bytes, other.size_bytes);
    std::swap(api_, other.api_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~StagingBuffer() {
    if (handle_) api_->BufferRelease(handle_);
  }
  WGPUBuffer handle() const { return handle_; }

  uint64_t size_bytes = 0;

 private:
  const Api* api_ = nullptr;
  WGPUBuffer handle_ = nullptr;
};

struct Readback {
  // What the callback says. It owns its share: after an interrupted wait it may come when nobody waits any more.
  struct Map {
    bool done = false;
    WGPUMapAsyncStatus status{};
    std::string message;
  };

  StagingBuffer staging;
  std::shared_ptr<Map> map;
  WGPUFuture future{};
  char* data = nullptr;
  uint64_t size_bytes = 0, mapped_bytes = 0;
  bool with_status = false;
};

}  // namespace torch_webgpu
