// What can go wrong below ATen, as C++ exceptions.
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

}  // namespace torch_webgpu
