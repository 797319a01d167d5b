#include "runtime/profile.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <limits>
#include <thread>
#include <unordered_map>

#include "runtime/error.h"
#include "runtime/stream.h"

namespace torch_webgpu {

std::atomic<Profile*> Profile::recording_{nullptr}, Profile::attached_{nullptr};

namespace {

constexpr uint32_t kQueries = 4096;           // the most that WebGPU allows in a query set
constexpr uint64_t kPageTimestamps = 131072;  // a megabyte
constexpr uint64_t kResolveAlignment = 256 / sizeof(uint64_t);

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// A device's set is used by one profile after the other. The caller holds the stream's lock.
WGPUQuerySet queries_of(Device& device) {
  static auto* sets = new std::unordered_map<const Device*, WGPUQuerySet>;
  auto& set = (*sets)[&device];
  if (!set) {
    WGPUQuerySetDescriptor descriptor{};
    descriptor.type = WGPUQueryType_Timestamp;
    descriptor.count = kQueries;
    set = device.api.DeviceCreateQuerySet(device.handle, &descriptor);
  }
  return set;
}

// OpScope tells its name as the end of an error's text: " (in aten::add.out)".
std::string running_op() {
  const std::string suffix = OpScope::suffix();
  constexpr size_t kOpening = 5;
  return suffix.size() > kOpening ? suffix.substr(kOpening, suffix.size() - kOpening - 1) : "";
}

}  // namespace

Profile::~Profile() {
  Profile* self = this;
  recording_.compare_exchange_strong(self, nullptr);
  self = this;
  attached_.compare_exchange_strong(self, nullptr);
}

void Profile::start() {
  Profile* none = nullptr;
  if (!attached_.compare_exchange_strong(none, this)) throw Error("webgpu: a profile is running already");
  recording_ = this;
}

bool Profile::follows(Device& device) {
  if (!device_) open(device);
  return device_ == &device;
}

void Profile::open(Device& device) {
  device_ = &device;
  has_device_times_ = device.has_timestamps;
  if (!has_device_times_) return;
  queries_ = queries_of(device);
  writes_.querySet = queries_;
  pass_.timestampWrites = &writes_;
}

void Profile::begin(const Kernel& kernel, uint64_t bytes, const uint32_t* grid) {
  Dispatch dispatch{};
  dispatch.label = kernel.label;
  dispatch.op = &*ops_.insert(running_op()).first;
  std::copy(grid, grid + 3, dispatch.grid);
  dispatch.bytes = bytes;
  dispatch.correlation = correlation_;
  dispatch.thread = std::hash<std::thread::id>()(std::this_thread::get_id());
  dispatch.device_ns = -1;
  timed_ = has_device_times_ && 2 * pending_ < kQueries;
  if (timed_) {
    if (pending_ == 0) pending_first_ = dispatches_.size();
    writes_.beginningOfPassWriteIndex = 2 * pending_;
    writes_.endOfPassWriteIndex = 2 * pending_ + 1;
    ++pending_;
  }
  dispatch.host_begin_ns = now_ns();
  dispatches_.push_back(dispatch);
}

void Profile::end() {
  Dispatch& dispatch = dispatches_.back();
  dispatch.host_ns = now_ns() - dispatch.host_begin_ns;
  timed_ = false;
}

void Profile::add_page() {
  WGPUBufferDescriptor descriptor{};
  descriptor.size = kPageTimestamps * sizeof(uint64_t);
  descriptor.usage = WGPUBufferUsage_QueryResolve | WGPUBufferUsage_CopySrc;
  pages_.push_back({device_->api.DeviceCreateBuffer(device_->handle, &descriptor), 0});
}

void Profile::resolve(WGPUCommandEncoder encoder) {
  if (pending_ == 0) return;
  const uint64_t timestamps = 2 * uint64_t{pending_};
  if (pages_.empty() || pages_.back().used + timestamps > kPageTimestamps) add_page();
  Page& page = pages_.back();
  device_->api.CommandEncoderResolveQuerySet(encoder, queries_, 0, static_cast<uint32_t>(timestamps), page.buffer,
                                             page.used * sizeof(uint64_t));
  batches_.push_back({pending_first_, pending_, pages_.size() - 1, page.used, now_ns()});
  page.used = (page.used + timestamps + kResolveAlignment - 1) / kResolveAlignment * kResolveAlignment;
  pending_ = 0;
}

void Profile::stop(Stream* stream) {
  if (attached_ != this) return;
  recording_ = nullptr;
  std::exception_ptr failure;
  const auto attempt = [&](const auto& call) {
    try {
      call();
    } catch (...) {
      if (!failure) failure = std::current_exception();
    }
  };
  if (stream) attempt([&] { stream->flush(); });  // including the commands that resolve the last batch
  attached_ = nullptr;
  if (stream) {
    // Takes the lock: whoever still saw the profile is done with it. An error of the work that was profiled comes here
    // rather than with the timestamps.
    attempt([&] { stream->synchronize(); });
    if (has_device_times_) attempt([&] { read_timestamps(*stream); });
  }
  if (failure) std::rethrow_exception(failure);
}

void Profile::read_timestamps(Stream& stream) {
  std::vector<std::vector<uint64_t>> timestamps;
  std::vector<WGPUBuffer> buffers;
  for (const auto& page : pages_) {
    Buffer buffer;
    buffer.handle = page.buffer;
    timestamps.emplace_back(page.used);
    stream.read(buffer, 0, timestamps.back().data(), page.used * sizeof(uint64_t));
    buffers.push_back(page.buffer);
  }
  place_on_the_hosts_clock(timestamps);
  pages_.clear();
  if (!buffers.empty()) stream.destroy_buffers(buffers);
}

// The device's clock has an origin of its own. No dispatch began before it was submitted; where the device was idle one
// began right then, so the smallest shift that keeps this order is the distance of the clocks.
void Profile::place_on_the_hosts_clock(const std::vector<std::vector<uint64_t>>& pages) {
  const Api& api = device_->api;
  const double tick_ns = api.QueueGetTimestampPeriod ? api.QueueGetTimestampPeriod(device_->queue) : 1;
  const auto device_ns = [&](const Batch& batch, size_t index) {
    return static_cast<int64_t>(static_cast<double>(pages[batch.page][batch.offset + index]) * tick_ns);
  };
  int64_t shift = std::numeric_limits<int64_t>::min();
  for (const auto& batch : batches_) shift = std::max(shift, batch.submitted_ns - device_ns(batch, 0));
  for (const auto& batch : batches_) {
    for (size_t i = 0; i < batch.count; ++i) {
      Dispatch& dispatch = dispatches_[batch.first + i];
      const int64_t begin = device_ns(batch, 2 * i);
      dispatch.device_begin_ns = begin + shift;
      dispatch.device_ns = std::max<int64_t>(0, device_ns(batch, 2 * i + 1) - begin);
    }
  }
}

}  // namespace torch_webgpu
