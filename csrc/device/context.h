// The process's one device: opened on first use, refused after a fork.
#pragma once
#include <c10/core/Device.h>

#include <atomic>
#include <string>

#include "runtime/error.h"
#include "runtime/runtime.h"

namespace torch_webgpu {

inline constexpr c10::DeviceType kDeviceType = c10::DeviceType::PrivateUse1;
inline const c10::Device kDevice(kDeviceType, 0);

void check_ordinal(c10::DeviceIndex index);  // throws for any device but the one there is

// Where the libraries are; the environment's choice is read when the device is opened.
void set_library_paths(std::vector<std::string> dawn, std::vector<std::string> wgpu);

bool is_available() noexcept;      // looks for an adapter once, opens no device
std::string unavailable_reason();  // empty when available
bool is_open() noexcept;
bool in_bad_fork() noexcept;

namespace detail {
extern std::atomic<Runtime*> open_runtime;
Runtime& open();
[[noreturn]] void throw_index_error(const IndexError& error);
}  // namespace detail

// Runs a call that waits for the device; what a kernel found out of range becomes PyTorch's IndexError.
template <class Call>
decltype(auto) waiting(const Call& call) {
  try {
    return call();
  } catch (const IndexError& error) {
    detail::throw_index_error(error);
  }
}

inline Runtime& runtime() {
  Runtime* open = detail::open_runtime.load(std::memory_order_acquire);
  if (open) [[likely]]
    return *open;
  return detail::open();
}

}  // namespace torch_webgpu
