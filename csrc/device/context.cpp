#include "device/context.h"

#include <c10/util/Exception.h>

#include <cstdlib>
#include <mutex>

#include "device/on_open.h"
#include "runtime/error.h"
#include "runtime/system.h"

namespace torch_webgpu {
namespace detail {
std::atomic<Runtime*> open_runtime{nullptr};
}  // namespace detail

namespace {

std::string environment(const char* variable) {
  const char* value = std::getenv(variable);
  return value ? value : "";
}

constexpr const char* kForked =
    "Cannot use the webgpu device in a forked subprocess: the parent had opened it. To use it with multiprocessing, "
    "use "
    "the 'spawn' start method.";

void forget_in_child();

std::atomic<void (*)()> opened_call{nullptr};

struct Context {
  std::mutex mutex;
  DeviceOptions options;
  bool searched = false;
  std::optional<Adapter> adapter;
  std::string reason;
  std::atomic<bool> forked{false};

  void search() {
    if (searched) return;
    static std::once_flag registered;
    std::call_once(registered, call_after_fork, forget_in_child);
    searched = true;
    options.runtime = environment("TORCH_WEBGPU_RUNTIME");
    options.adapter = environment("TORCH_WEBGPU_ADAPTER");
    options.limits = environment("TORCH_WEBGPU_LIMITS");
    try {
      adapter = Adapter::find(options);
    } catch (const std::exception& error) {
      reason = error.what();
    }
  }
};

Context& context() {
  static auto* instance = new Context;  // outlives static destruction
  return *instance;
}

// The driver's threads and locks do not survive a fork. An adapter that was only looked at is asked for again.
void forget_in_child() {
  Context& here = context();
  if (detail::open_runtime.exchange(nullptr)) here.forked = true;
  here.searched = false;
  here.adapter.reset();
  here.reason.clear();
}

}  // namespace

void set_library_paths(std::vector<std::string> dawn, std::vector<std::string> wgpu) {
  Context& here = context();
  const std::lock_guard guard(here.mutex);
  here.options.dawn_paths = std::move(dawn);
  here.options.wgpu_paths = std::move(wgpu);
}

void check_ordinal(c10::DeviceIndex index) {
  TORCH_CHECK(index <= 0, "webgpu: invalid device ordinal ", static_cast<int>(index),
              ": there is one device, webgpu:0");
}

bool is_available() noexcept {
  if (is_open()) return true;
  if (in_bad_fork()) return false;
  Context& here = context();
  const std::lock_guard guard(here.mutex);
  here.search();
  return here.adapter.has_value();
}

std::string unavailable_reason() {
  if (in_bad_fork()) return kForked;
  return is_available() ? "" : context().reason;
}

bool is_open() noexcept { return detail::open_runtime.load(std::memory_order_acquire) != nullptr; }

bool in_bad_fork() noexcept { return context().forked; }

namespace {

// Null where another thread was first.
Runtime* open_first() {
  Context& here = context();
  const std::lock_guard guard(here.mutex);
  if (is_open()) return nullptr;
  here.search();
  if (!here.adapter) throw UnavailableError("webgpu: " + here.reason);
  auto* opened = new Runtime(std::move(*here.adapter));
  here.adapter.reset();
  detail::open_runtime.store(opened, std::memory_order_release);
  return opened;
}

}  // namespace

void on_open(void (*call)()) { opened_call = call; }

Runtime& detail::open() {
  TORCH_CHECK(!in_bad_fork(), kForked);
  Runtime* first = open_first();
  if (auto* call = opened_call.load(); first && call) call();  // without the lock: it may want Python's
  return *open_runtime;
}

void detail::throw_index_error(const IndexError& error) { C10_THROW_ERROR(IndexError, error.what()); }

}  // namespace torch_webgpu
