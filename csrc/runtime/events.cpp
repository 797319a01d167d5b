// The part of Stream that records, waits for and times events.
#include <chrono>
#include <utility>

#include "runtime/background.h"
#include "runtime/error.h"
#include "runtime/stream.h"

namespace torch_webgpu {
namespace {

constexpr int kQueries = 1024;  // timestamps in one query set

double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

bool Stream::is_idle() {
  Event now(false);
  record(now);
  return is_complete(now);
}

void Stream::add_queries() {
  WGPUQuerySetDescriptor descriptor{};
  descriptor.type = WGPUQueryType_Timestamp;
  descriptor.count = kQueries;
  const int first = static_cast<int>(queries_.size()) * kQueries;
  queries_.push_back(device_.api.DeviceCreateQuerySet(device_.handle, &descriptor));
  for (int query = first + kQueries - 1; query >= first; --query) free_queries_.push_back(query);
}

int Stream::take_query() {
  if (free_queries_.empty()) add_queries();
  const int query = free_queries_.back();
  free_queries_.pop_back();
  return query;
}

void Stream::write_timestamp(int query) {
  WGPUPassTimestampWrites timestamps{};
  timestamps.querySet = queries_[query / kQueries];
  timestamps.beginningOfPassWriteIndex = WGPU_QUERY_SET_INDEX_UNDEFINED;
  timestamps.endOfPassWriteIndex = static_cast<uint32_t>(query % kQueries);
  WGPUComputePassDescriptor descriptor{};
  descriptor.timestampWrites = &timestamps;
  end_pass();
  auto* pass = device_.api.CommandEncoderBeginComputePass(encoder(), &descriptor);
  device_.api.ComputePassEncoderEnd(pass);
  device_.api.ComputePassEncoderRelease(pass);
}

void Stream::record(Event& event) {
  const std::lock_guard guard(mutex_);
  device_.throw_if_lost();
  event.completion_ = std::make_shared<Event::Completion>();
  if (event.timing && device_.has_timestamps && event.query_ < 0) event.query_ = take_query();
  DeferredSubmit submit{event.completion_, event.query_};
  if (is_in_order()) {
    run(submit);
  } else {
    put_aside(std::move(submit));
  }
  device_.poll();  // lets go of the events before it that nobody asked about
}

// The callback owns its share of the completion: after a loss it may come when nobody waits any more.
void Stream::mark(const std::shared_ptr<Event::Completion>& event) {
  WGPUQueueWorkDoneCallbackInfo callback{};
  callback.mode = WGPUCallbackMode_AllowProcessEvents;
  callback.userdata1 = new std::shared_ptr<Event::Completion>(event);
  callback.callback = [](WGPUQueueWorkDoneStatus, WGPUStringView, void* data, void*) {
    const std::unique_ptr<std::shared_ptr<Event::Completion>> completion(
        static_cast<std::shared_ptr<Event::Completion>*>(data));
    (*completion)->host_time_ms = now_ms();
    (*completion)->done = true;
  };
  event->future = device_.api.QueueOnSubmittedWorkDone(device_.queue, callback);
  event->marked = true;
}

bool Stream::is_complete(Event& event) {
  const std::lock_guard guard(mutex_);
  if (!event.completion_ || event.completion_->done) return true;
  device_.throw_if_lost();
  run_ready();
  device_.poll();
  return event.completion_->done;
}

void Stream::wait(Event& event) {
  const std::lock_guard guard(mutex_);
  if (!event.completion_) return;
  if (event.completion_->done) {  // what did not compile is raised here too, by whoever waits first
    if (!failed_kernels_.empty() && !leaves_errors) [[unlikely]]
      throw_failed_kernels();
    return;
  }
  device_.throw_if_lost();
  const auto completion = event.completion_;
  if (!completion->marked) {
    settle();
    device_.throw_if_lost();
  }
  wait(completion->future, completion->done);
  check();
}

double Stream::elapsed_ms(Event& from, Event& to) {
  wait(from);
  wait(to);
  if (!from.completion_ || !to.completion_) throw Error("webgpu: both events must be recorded before they are timed");
  if (from.query_ < 0 || to.query_ < 0) return to.completion_->host_time_ms - from.completion_->host_time_ms;
  const std::lock_guard guard(mutex_);
  device_.throw_if_lost();
  end_pass();
  for (const auto& [event, offset] : {std::pair{&from, 0u}, std::pair{&to, 256u}}) {
    device_.api.CommandEncoderResolveQuerySet(encoder(), queries_[event->query_ / kQueries],
                                              static_cast<uint32_t>(event->query_ % kQueries), 1, resolved_, offset);
  }
  Buffer resolved;
  resolved.handle = resolved_;
  uint64_t ticks[33];
  read_now(resolved, 0, ticks, sizeof(ticks));
  return static_cast<double>(static_cast<int64_t>(ticks[32] - ticks[0])) * tick_ns_ * 1e-6;
}

void Stream::forget(Event& event) noexcept {
  const std::lock_guard guard(mutex_);
  if (event.query_ >= 0) free_queries_.push_back(event.query_);
  event.query_ = -1;
}

}  // namespace torch_webgpu
