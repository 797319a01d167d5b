// The part of Stream that keeps the order while kernels are compiled: what comes behind a launch whose kernel is not
// ready is put aside as data, and encoded when it is its turn.
#include "runtime/deferred.h"

#include <algorithm>
#include <utility>

#include "runtime/error.h"
#include "runtime/profile.h"
#include "runtime/stream.h"
#include "runtime/unlocked.h"

namespace torch_webgpu {
namespace {

constexpr size_t kMostAside = 4096;  // a bound on memory: about two megabytes

}  // namespace

void Stream::place(const std::shared_ptr<Kernel>& kernel, const DispatchView& dispatch) {
  const bool is_next = is_in_order() && kernel->is_compiled();
  if (is_next || dry_) [[likely]] {
    encode(*kernel, dispatch, Profile::recording(device_));
    return;
  }
  const auto& [bindings, params, grid, param_words, windowed, reports, bytes, flops] = dispatch;
  put_aside(DeferredLaunch{kernel,
                           {bindings, bindings + kernel->signature.bindings},
                           {params, params + param_words},
                           {grid[0], grid[1], grid[2]},
                           windowed,
                           reports,
                           bytes,
                           flops});
}

void Stream::place_copy(const DeferredCopy& copy) { is_in_order() ? run(copy) : put_aside(copy); }

bool Stream::is_in_order() {
  if (aside_.empty()) [[likely]]
    return true;
  run_ready();
  return aside_.empty();
}

void Stream::put_aside(Deferred&& deferred) {
  if (aside_.size() >= kMostAside) settle();
  if (const auto* write = std::get_if<DeferredWrite>(&deferred)) bytes_aside_ += write->bytes.size();
  aside_.push_back(std::move(deferred));
}

// Encodes what needs no more waiting.
void Stream::run_ready() {
  drop_if_lost();
  while (!aside_.empty()) {
    const auto* launch = std::get_if<DeferredLaunch>(&aside_.front());
    if (launch && !launch->kernel->is_done()) return;
    run_first();
  }
}

// Encodes all that was put aside so far. This thread helps to compile; meanwhile it lets go of the stream's lock.
void Stream::settle() {
  run_ready();
  if (aside_.empty()) return;
  std::vector<std::shared_ptr<Kernel>> missing;
  for (const auto& deferred : aside_) {
    const auto* launch = std::get_if<DeferredLaunch>(&deferred);
    if (launch && !launch->kernel->is_done()) missing.push_back(launch->kernel);
  }
  const uint64_t end = taken_ + aside_.size();
  {
    const Unlocked unlocked(mutex_);
    for (const auto& kernel : missing) kernels_.compile(*kernel);
    for (const auto& kernel : missing) kernels_.finish(*kernel);
  }
  drop_if_lost();
  while (taken_ < end) run_first();
}

void Stream::run_first() {
  const Deferred first = std::move(aside_.front());
  aside_.pop_front();
  ++taken_;
  std::visit([&](const auto& deferred) { run(deferred); }, first);
}

// Not profiled: a launch that is takes no place here, but waits for its kernel.
void Stream::run(const DeferredLaunch& launch) {
  if (launch.kernel->has_failed()) {
    const auto& failure = launch.kernel->failure();
    if (std::find(failed_kernels_.begin(), failed_kernels_.end(), failure) == failed_kernels_.end()) {
      failed_kernels_.push_back(failure);
    }
    return;
  }
  encode(*launch.kernel,
         {launch.bindings.data(), launch.params.data(), launch.grid, static_cast<uint32_t>(launch.params.size()),
          launch.windowed, launch.reports, launch.bytes, launch.flops},
         nullptr);
}

void Stream::run(const DeferredCopy& copy) {
  const auto &source = *copy.source, &target = *copy.target;
  const uint64_t from = source.offset + copy.source_offset, to = target.offset + copy.target_offset;
  if (source.handle == target.handle) {  // WebGPU copies between two buffers only
    reserve_scratch(copy.size_bytes);
    encode_copy(source.handle, from, scratch_.handle, 0, copy.size_bytes);
    encode_copy(scratch_.handle, 0, target.handle, to, copy.size_bytes);
  } else {
    encode_copy(source.handle, from, target.handle, to, copy.size_bytes);
  }
  if (batch_.add(copy.size_bytes, 0)) submit();
}

void Stream::run(const DeferredWrite& write) {
  bytes_aside_ -= write.bytes.size();
  write_now(*write.target, write.offset, write.bytes.data(), write.bytes.size());
}

void Stream::run(const DeferredSubmit& submitted) {
  if (submitted.query >= 0) write_timestamp(submitted.query);
  submit();
  submit_writes();
  if (submitted.event) mark(submitted.event);
}

void Stream::drop_if_lost() {
  if (!device_.is_lost()) [[likely]]
    return;
  taken_ += aside_.size();
  aside_.clear();
  bytes_aside_ = 0;
}

// A profile times each dispatch where the op makes it; with TORCH_WEBGPU_SYNC=1 an op raises its own error.
bool Stream::wants_kernels_at_once() const { return sync_every_op_ || Profile::is_recording(); }

void Stream::finish(Kernel& kernel) {
  kernels_.finish(kernel);
  if (sync_every_op_ && kernel.has_failed()) throw Error(kernel.failure());
}

void Stream::throw_failed_kernels() {
  std::string text;
  for (const auto& failure : std::exchange(failed_kernels_, {})) text += (text.empty() ? "" : "\n") + failure;
  throw Error(text);
}

}  // namespace torch_webgpu
