#include "runtime/stream.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "runtime/background.h"
#include "runtime/bindings.h"
#include "runtime/error.h"
#include "runtime/messages.h"
#include "runtime/profile.h"
#include "runtime/segments.h"
#include "runtime/tape.h"
#include "runtime/unlocked.h"

namespace torch_webgpu {
namespace {

constexpr uint64_t kSlotBytes = 256;  // the alignment every adapter accepts for a uniform binding
constexpr uint32_t kSlots = 1024;
constexpr uint64_t kParamBytes = uint64_t{kTableWords} * 4;
constexpr uint64_t kUploadBytes = uint64_t{32} << 20;  // of one write; two are under way
constexpr uint64_t kMostStagedBytes = 2 * kUploadBytes;
constexpr uint64_t kStagingOverhead = 2048;  // bytes of host memory that one small write takes
constexpr uint64_t kInterruptNs = 100'000'000;

std::atomic<void (*)()> interrupt{nullptr};

// A dispatch may not write one part of a buffer and declare to read another.
bool binds_parts_of_a_buffer(const Launch& launch) {
  for (uint32_t i = 1; i < launch.binding_count; ++i) {
    for (uint32_t other = 0; other < i; ++other) {
      if (launch.bindings[i].buffer == launch.bindings[other].buffer) return true;
    }
  }
  return false;
}

std::shared_ptr<Kernel> kernel_of(const Launch& launch, KernelCache& kernels) {
  if (launch.windowed && launch.read_only == 0) [[unlikely]] {
    if (binds_parts_of_a_buffer(launch)) {
      KernelKey key = launch.key;
      key.words[0] |= uint64_t{1} << 63;
      return kernels.get(key, launch.signature(), [&] {
        KernelSource source = launch.print(launch);
        declare_all_written(source.wgsl);
        return source;
      });
    }
  }
  return kernels.get(launch.key, launch.signature(), [&] { return launch.print(launch); });
}

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value && *value && std::strcmp(value, "0") != 0;
}

// A submit costs wgpu-native three times what it costs Dawn, and on software adapters it waits for the one before:
// large batches.
BatchLimit batch_limit(const Api& api) { return api.is_wgpu_native() ? BatchLimit(256, 256) : BatchLimit(8, 64); }

}  // namespace

Stream::Stream(Device& device, KernelCache& kernels)
    : device_(device), kernels_(kernels), groups_(device, kernels), batch_(batch_limit(device.api)) {
  const Api& api = device_.api;
  sync_every_op_ = is_set("TORCH_WEBGPU_SYNC");
  params_.resize((kSlots * kSlotBytes + kParamBytes) / 4);
  WGPUBufferDescriptor ring{};
  ring.size = kSlots * kSlotBytes + kParamBytes;
  ring.usage = WGPUBufferUsage_Uniform | WGPUBufferUsage_CopyDst;
  ring_ = api.DeviceCreateBuffer(device_.handle, &ring);
  for (uint32_t slot = 0; slot < kSlots; ++slot) {
    WGPUBindGroupEntry entry{};
    entry.buffer = ring_;
    entry.offset = slot * kSlotBytes;
    entry.size = kParamBytes;  // reaches into the slots behind, which a launch with many parameters also takes
    WGPUBindGroupDescriptor descriptor{};
    descriptor.layout = kernels_.params_layout();
    descriptor.entryCount = 1;
    descriptor.entries = &entry;
    slots_.push_back(api.DeviceCreateBindGroup(device_.handle, &descriptor));
  }
  WGPUBufferDescriptor status{};
  status.size = status_.size_bytes = kStatusBytes;
  status.usage = WGPUBufferUsage_Storage | WGPUBufferUsage_CopySrc | WGPUBufferUsage_CopyDst;
  status_.handle = api.DeviceCreateBuffer(device_.handle, &status);
  if (device_.has_timestamps) {
    WGPUBufferDescriptor resolved{};
    resolved.size = 512;  // two timestamps, each at an offset of its own: resolving wants 256-byte alignment
    resolved.usage = WGPUBufferUsage_QueryResolve | WGPUBufferUsage_CopySrc;
    resolved_ = api.DeviceCreateBuffer(device_.handle, &resolved);
    if (api.QueueGetTimestampPeriod) tick_ns_ = api.QueueGetTimestampPeriod(device_.queue);
  }
}

WGPUCommandEncoder Stream::encoder() {
  if (!encoder_) encoder_ = device_.api.DeviceCreateCommandEncoder(device_.handle, nullptr);
  return encoder_;
}

void Stream::open_pass() {
  const auto* profile = Profile::attached(device_);
  pass_ = device_.api.CommandEncoderBeginComputePass(encoder(), profile ? profile->pass() : nullptr);
  current_kernel_ = 0;
  current_group_ = nullptr;
}

void Stream::end_pass() {
  if (!pass_) return;
  device_.api.ComputePassEncoderEnd(pass_);
  device_.api.ComputePassEncoderRelease(pass_);
  pass_ = nullptr;
}

void Stream::dispatch(const Launch& launch) {
  device_.throw_if_lost();
  const auto kernel = kernel_of(launch, kernels_);
  const bool at_once = wants_kernels_at_once();
  if (at_once) [[unlikely]]
    finish(*kernel);
  const std::lock_guard guard(mutex_);
  device_.throw_if_lost();
  if (at_once) [[unlikely]]
    settle();
  if (auto* tape = recording()) [[unlikely]]
    tape->add(launch, kernel, status_);
  place(kernel, launch.view());
  if (sync_every_op_) [[unlikely]]
    finish_op(*kernel->label);
}

void Stream::prepare(const Launch& launch) {
  device_.throw_if_lost();
  const auto kernel = kernel_of(launch, kernels_);
  kernels_.finish(*kernel);
  if (kernel->has_failed()) throw Error(kernel->failure());
}

void Stream::encode(const Kernel& kernel, const DispatchView& dispatch, Profile* profile) {
  const auto& [bindings, params, grid, param_words, windowed, reports, bytes, flops] = dispatch;
  const uint32_t uniforms = kernel.signature.uniforms;
  const auto slots =
      static_cast<uint32_t>(std::max<uint64_t>(uniforms, (uint64_t{param_words} * 4 + kSlotBytes - 1) / kSlotBytes));
  if (next_slot_ + slots > kSlots) submit();
  uint32_t* words = &params_[next_slot_ * kSlotBytes / 4];
  std::copy_n(params, param_words, words);  // none of them may be a null pointer
  if (reports) {
    words[0] = reporter(kernel.label);
    may_report_ = true;
  }
  if (dry_) [[unlikely]]
    return;
  const Api& api = device_.api;
  if (profile) [[unlikely]] {
    end_pass();
    profile->begin(kernel, bytes, grid);
  }
  WGPUBindGroup apart = nullptr;
  if (reads_what_it_writes(bindings, kernel.signature)) [[unlikely]]
    apart = bind_apart(bindings, kernel.signature);
  if (!pass_) open_pass();
  if (kernel.id != current_kernel_) {
    current_kernel_ = kernel.id;
    api.ComputePassEncoderSetPipeline(pass_, kernel.pipeline());
  }
  const bool is_kept = !windowed && !apart;
  auto* group = apart      ? apart
                : windowed ? groups_.create(bindings, kernel.signature)
                           : groups_.get(bindings, kernel.signature);
  if (group != current_group_) {
    current_group_ = group;
    api.ComputePassEncoderSetBindGroup(pass_, 0, group, 0, nullptr);
  }
  if (!is_kept) [[unlikely]] {
    api.BindGroupRelease(group);
    current_group_ = nullptr;
  }
  if (uniforms == 1) [[likely]] {
    api.ComputePassEncoderSetBindGroup(pass_, 1, slots_[next_slot_], 0, nullptr);
  } else {
    auto* several = several_uniforms(uniforms);
    api.ComputePassEncoderSetBindGroup(pass_, 1, several, 0, nullptr);
    api.BindGroupRelease(several);
  }
  api.ComputePassEncoderDispatchWorkgroups(pass_, grid[0], grid[1], grid[2]);
  if (profile) [[unlikely]] {
    end_pass();
    profile->end();
  }
  next_slot_ += slots;
  recent_[stats_.dispatches++ % recent_.size()] = kernel.label;
  if (batch_.add(bytes, flops)) submit();
}

// The next slots of the ring as `count` uniform bindings.
WGPUBindGroup Stream::several_uniforms(uint32_t count) {
  std::array<WGPUBindGroupEntry, kMaxUniforms> entries{};
  for (uint32_t i = 0; i < count; ++i) {
    entries[i].binding = i;
    entries[i].buffer = ring_;
    entries[i].offset = (next_slot_ + i) * kSlotBytes;
    entries[i].size = i + 1 == count ? kParamBytes : kSlotBytes;
  }
  WGPUBindGroupDescriptor descriptor{};
  descriptor.layout = kernels_.uniform_layout(count);
  descriptor.entryCount = count;
  descriptor.entries = entries.data();
  return device_.api.DeviceCreateBindGroup(device_.handle, &descriptor);
}

// With TORCH_WEBGPU_SYNC=1 an error is raised by the operation that made it.
void Stream::finish_op(const std::string& name) {
  submit();
  wait_for_queue();
  device_.throw_pending_error("in " + name);
  read_status();
}

bool Stream::record_to(Tape& tape) {
  const std::lock_guard guard(mutex_);
  if (tape_) return false;
  recorder_ = std::this_thread::get_id();
  tape_ = &tape;
  return true;
}

void Stream::stop_recording() {
  const std::lock_guard guard(mutex_);
  tape_ = nullptr;
}

void Stream::replay(const Tape& tape, const Buffer* const* slots, const RandomStart* randoms) {
  const bool at_once = wants_kernels_at_once();
  if (at_once) [[unlikely]] {
    for (const auto& step : tape.steps()) {
      if (step.kernel) finish(*step.kernel);
    }
  }
  const std::lock_guard guard(mutex_);
  device_.throw_if_lost();
  if (at_once) [[unlikely]]
    settle();
  if (auto* outer = recording()) outer->fail("it replays another tape");
  Binding bindings[kMaxBindings];
  for (const auto& step : tape.steps()) {
    const Tape::SlotBinding* places = tape.bindings(step);
    if (!step.kernel) {
      place_copy(
          {slots[places[0].slot], step.source_offset, slots[places[1].slot], step.target_offset, step.size_bytes});
      continue;
    }
    for (uint32_t i = 0; i < step.binding_count; ++i) {
      bindings[i] = {slots[places[i].slot], places[i].window, places[i].size_bytes};
    }
    const uint32_t* params = tape.params(step);
    uint32_t renewed[kTableWords];
    if (step.random_word != kNoWord) [[unlikely]] {
      std::copy_n(params, step.param_words, renewed);
      uint32_t* words = &renewed[step.random_word];
      const RandomStart &then = tape.randoms()[step.random_source], &now = randoms[step.random_source];
      const uint64_t counter = (uint64_t{words[3]} << 32 | words[2]) - then.counter + now.counter;
      words[0] = static_cast<uint32_t>(now.seed);
      words[1] = static_cast<uint32_t>(now.seed >> 32);
      words[2] = static_cast<uint32_t>(counter);
      words[3] = static_cast<uint32_t>(counter >> 32);
      params = renewed;
    }
    place(step.kernel,
          {bindings, params, step.grid, step.param_words, step.windowed, step.reports, step.bytes, step.flops});
    if (sync_every_op_) [[unlikely]]
      finish_op(*step.kernel->label);
  }
}

void Stream::submit() {
  if (!encoder_ || device_.is_lost()) return;
  const Api& api = device_.api;
  const auto errors = device_.errors_reported();
  end_pass();
  if (auto* profile = Profile::attached(device_)) [[unlikely]]
    profile->resolve(encoder_);
  auto* commands = api.CommandEncoderFinish(encoder_, nullptr);
  api.CommandEncoderRelease(encoder_);
  encoder_ = nullptr;
  // A write is ordered after every earlier submit and before this one, so the slots are free to be written again.
  if (next_slot_ > 0) api.QueueWriteBuffer(device_.queue, ring_, 0, params_.data(), next_slot_ * kSlotBytes);
  // An invalid batch does nothing on Dawn; wgpu-native ends the process when it gets one.
  const bool valid = !api.is_wgpu_native() || device_.errors_reported() == errors;
  if (valid) api.QueueSubmit(device_.queue, 1, &commands);
  api.CommandBufferRelease(commands);
  ++stats_.submits;
  if (valid) staged_bytes_ = 0;
  batch_.submitted();
  next_slot_ = 0;
}

void Stream::copy(const Buffer& source, uint64_t source_offset, const Buffer& target, uint64_t target_offset,
                  uint64_t size_bytes) {
  const std::lock_guard guard(mutex_);
  device_.throw_if_lost();
  if (auto* tape = recording()) [[unlikely]]
    tape->add_copy(source, source_offset, target, target_offset, size_bytes);
  place_copy({&source, source_offset, &target, target_offset, size_bytes});
  if (sync_every_op_) [[unlikely]]
    finish_op("a copy");
}

void Stream::write(const Buffer& target, uint64_t offset, const void* data, uint64_t size_bytes) {
  const std::lock_guard guard(mutex_);
  device_.throw_if_lost();
  if (auto* tape = recording()) [[unlikely]]
    tape->fail("it copies from the host");
  const auto* bytes = static_cast<const char*>(data);
  if (!is_in_order()) [[unlikely]] {
    if (bytes_aside_ + size_bytes <= kMostStagedBytes)
      return put_aside(DeferredWrite{&target, offset, {bytes, bytes + size_bytes}});
    settle();
  }
  write_now(target, offset, bytes, size_bytes);
}

void Stream::write_now(const Buffer& target, uint64_t offset, const char* bytes, uint64_t size_bytes) {
  submit();  // a queue write would otherwise overtake what is recorded
  const auto put = [&](uint64_t at, const void* from, uint64_t size) {
    device_.api.QueueWriteBuffer(device_.queue, target.handle, target.offset + offset + at, from, size);
    staged_bytes_ += size + kStagingOverhead;
  };
  const uint64_t whole = size_bytes & ~uint64_t{3};
  std::shared_ptr<Event::Completion> before;
  for (uint64_t done = 0; done < whole; done += kUploadBytes) {
    if (done > 0) {  // the library stages each write; do not let it stage gigabytes
      submit_writes();
      const auto last = std::make_shared<Event::Completion>();
      mark(last);
      if (before) wait(before->future, before->done);
      before = last;
    }
    put(done, bytes + done, std::min(kUploadBytes, whole - done));
  }
  if (size_bytes != whole) {
    uint32_t tail = 0;
    std::memcpy(&tail, bytes + whole, size_bytes - whole);
    put(whole, &tail, sizeof(tail));
  }
  ++stats_.uploads;
  if (staged_bytes_ > kMostStagedBytes) submit_writes();
}

// Writes go with the next batch; without one wgpu-native would keep them, and their copies, for ever.
void Stream::submit_writes() {
  if (staged_bytes_ == 0) return;
  device_.api.QueueSubmit(device_.queue, 0, nullptr);
  ++stats_.submits;
  staged_bytes_ = 0;
}

uint32_t Stream::reporter(const std::string* label) {
  const auto found = std::find(reporters_.begin(), reporters_.end(), label);
  const auto number = static_cast<uint32_t>(found - reporters_.begin());
  if (found == reporters_.end()) reporters_.push_back(label);
  return number;
}

void Stream::check_status(const uint32_t* words) {
  if (words[0] == 0) [[likely]]
    return;
  const uint32_t clear[kStatusBytes / 4] = {};
  device_.api.QueueWriteBuffer(device_.queue, status_.handle, 0, clear, kStatusBytes);
  staged_bytes_ += kStatusBytes + kStagingOverhead;
  if (words[4] == kReportsMessage) throw Error(message(words[5]));
  const auto index = static_cast<int64_t>(uint64_t{words[3]} << 32 | words[2]);
  const std::string op = words[1] < reporters_.size() ? *reporters_[words[1]] : "an operation";
  throw IndexError("index " + std::to_string(index) + " is out of bounds for dimension " + std::to_string(words[4]) +
                   " with size " + std::to_string(words[5]) + "\nfound by " + op + " on webgpu");
}

void Stream::flush() {
  const std::lock_guard guard(mutex_);
  device_.throw_if_lost();
  if (!is_in_order()) put_aside(DeferredSubmit{nullptr, -1});
  submit();
  submit_writes();
}

void Stream::synchronize() {
  const std::lock_guard guard(mutex_);
  device_.throw_if_lost();
  settle();
  submit();
  submit_writes();
  wait_for_queue();
  check();
  read_status();
}

void Stream::wait_for_queue(bool may_interrupt) {
  const auto now = std::make_shared<Event::Completion>();
  mark(now);
  may_interrupt ? wait(now->future, now->done) : void(device_.wait(now->future, now->done));
  batch_.waited();
}

void Stream::set_interrupt(void (*check)()) { interrupt = check; }

// The lock is let go of for the check, which may wait for a thread that wants it.
void Stream::wait(WGPUFuture future, const bool& done) {
  while (!device_.wait(future, done, kInterruptNs)) {
    auto* check = interrupt.load();
    if (!check) continue;
    const Unlocked unlocked(mutex_);
    check();
  }
  batch_.waited();
}

// With the lock: wgpu-native ends the process when the device goes while another thread waits for it.
void Stream::lose_device() {
  const std::lock_guard guard(mutex_);
  device_.destroy();
}

void Stream::check() {
  device_.throw_if_lost();
  if (!failed_kernels_.empty() && !leaves_errors) [[unlikely]]
    throw_failed_kernels();
  if (device_.has_pending_error()) [[unlikely]]
    device_.throw_pending_error("the last operations were " + recent_ops());
}

std::string Stream::recent_ops() const {
  std::vector<std::string> names;
  for (const auto* label : recent_) {
    if (label && std::find(names.begin(), names.end(), *label) == names.end()) names.push_back(*label);
  }
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "copies" : text;
}

StreamStats Stream::stats() {
  const std::lock_guard guard(mutex_);
  StreamStats stats = stats_;
  stats.bind_group_hits = groups_.hits();
  stats.bind_group_misses = groups_.misses();
  stats.kernels_compiled = kernels_.compiled();
  stats.kernels_cached = kernels_.size();
  stats.kernel_bytes = kernels_.size_bytes();
  for (const auto& deferred : aside_) {
    stats.dispatches += std::holds_alternative<DeferredLaunch>(deferred);
    stats.copies += std::holds_alternative<DeferredCopy>(deferred);
    stats.uploads += std::holds_alternative<DeferredWrite>(deferred);
  }
  return stats;
}

void Stream::set_dry(bool dry) {
  const std::lock_guard guard(mutex_);
  settle();
  submit();
  dry_ = dry;
}

WGPUBuffer Stream::create_buffer(const WGPUBufferDescriptor& descriptor) {
  const std::lock_guard guard(mutex_);
  WGPUBuffer buffer = nullptr;
  const auto failure = device_.failure_of(
      WGPUErrorFilter_OutOfMemory, [&] { buffer = device_.api.DeviceCreateBuffer(device_.handle, &descriptor); });
  if (failure && buffer) {
    device_.api.BufferRelease(buffer);
    buffer = nullptr;
  }
  return buffer;
}

// Recorded commands may still use them, so submit those first; the driver keeps the buffers until they have run.
void Stream::destroy_buffers(const std::vector<WGPUBuffer>& buffers) {
  const std::lock_guard guard(mutex_);
  settle();
  submit();
  wait_for_queue(/*may_interrupt=*/false);
  groups_.clear();
  current_group_ = nullptr;
  for (auto* buffer : buffers) {
    device_.api.BufferDestroy(buffer);
    device_.api.BufferRelease(buffer);
  }
}

}  // namespace torch_webgpu
