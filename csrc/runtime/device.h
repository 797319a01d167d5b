// The adapter and the device: choosing, limits, features, waiting, and the one place where WebGPU's errors become
// C++ exceptions.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/api.h"

namespace torch_webgpu {

struct DeviceOptions {
  std::string runtime;  // "dawn", "wgpu", a path, or empty for the first that works
  std::string adapter;  // part of an adapter's name; "null" asks for Dawn's Null backend; empty for the best
  std::string limits;   // "default" asks for no more than every WebGPU adapter has; empty for all that this one has
  std::vector<std::string> dawn_paths;
  std::vector<std::string> wgpu_paths;
};

struct AdapterInfo {
  std::string name, vendor, architecture, driver, backend, type;
  uint32_t vendor_id = 0, device_id = 0, subgroup_min = 0, subgroup_max = 0;
  bool software = false;  // runs on the host's cores
};

// A library with an adapter that answered; opening a device from it is a second step, so that asking whether one is
// available starts no driver threads.
struct Adapter {
  static Adapter find(const DeviceOptions& options);  // throws UnavailableError that lists what was tried

  Api api;
  WGPUInstance instance = nullptr;
  WGPUAdapter handle = nullptr;
  AdapterInfo info;
  bool default_limits = false;
};

class Device {
 public:
  explicit Device(Adapter adapter);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const Api api;
  const AdapterInfo info;
  WGPUDevice handle = nullptr;
  WGPUQueue queue = nullptr;
  WGPULimits limits{};
  bool has_f16 = false, has_subgroups = false, has_timestamps = false;
  std::vector<std::string> features;

  // Blocks until `done`, which the callback of `future` sets. Never spins: a software adapter needs the core. False
  // when Dawn's time is over first; wgpu-native waits for the end.
  bool wait(WGPUFuture future, const bool& done, uint64_t timeout_ns = UINT64_MAX) const;
  // Lets callbacks of finished work run, without waiting.
  void poll() const;

  // Runs `create` and returns what WebGPU said against it, if anything. Several threads may do so at once.
  std::optional<std::string> failure_of(WGPUErrorFilter filter, const std::function<void()>& create) const;

  bool is_lost() const { return lost_.load(std::memory_order_acquire); }
  void throw_if_lost() const {
    if (is_lost()) [[unlikely]]
      throw_lost();
  }
  // Throws what was reported since the last call; `during` names the ops that were under way.
  void throw_pending_error(const std::string& during);
  bool has_pending_error() const { return has_error_.load(std::memory_order_relaxed); }
  uint64_t errors_reported() const { return errors_reported_.load(std::memory_order_relaxed); }

  void destroy();  // behaves as if the adapter was unplugged; for tests

 private:
  [[noreturn]] void throw_lost() const;
  void request_device(WGPUAdapter adapter);

  WGPUInstance instance_ = nullptr;
  mutable std::mutex error_mutex_;
  std::atomic<bool> lost_{false}, has_error_{false};
  std::atomic<uint64_t> errors_reported_{0};
  std::string error_, lost_reason_;
};

}  // namespace torch_webgpu
