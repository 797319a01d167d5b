// The errors of the runtime, as C++ exceptions.
#pragma once
#include <stdexcept>
#include <string>

namespace torch_webgpu {

struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// No library, no adapter, or no device could be had.
struct UnavailableError final : Error {
  using Error::Error;
};
struct OutOfMemoryError final : Error {
  using Error::Error;
};
// A kernel met an index out of range.
struct IndexError final : Error {
  using Error::Error;
};
// The device is gone; every later call says so.
struct DeviceLostError final : Error {
  using Error::Error;
};

// Names the op that this thread is running, for errors that only know the device.
class OpScope {
 public:
  explicit OpScope(const char* name) : outer_(current_) { current_ = name; }
  ~OpScope() { current_ = outer_; }
  OpScope(const OpScope&) = delete;
  OpScope& operator=(const OpScope&) = delete;

  static std::string suffix() { return current_ ? std::string(" (in ") + current_ + ")" : ""; }

 private:
  static inline constinit thread_local const char* current_ = nullptr;
  const char* outer_;
};

}  // namespace torch_webgpu
