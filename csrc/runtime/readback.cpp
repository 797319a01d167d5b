// The part of Stream that copies to the host: the device copies the next chunk while the host reads this one.
#include "runtime/readback.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "runtime/background.h"
#include "runtime/error.h"
#include "runtime/stream.h"
#include "runtime/tape.h"

namespace torch_webgpu {
namespace {

constexpr uint64_t kChunkBytes = uint64_t{32} << 20;
constexpr uint64_t kLeastStagingBytes = uint64_t{1} << 16;
constexpr size_t kMostStaging = 2;  // that are kept

}  // namespace

void Stream::read(const Buffer& source, uint64_t offset, void* data, uint64_t size_bytes) {
  const std::lock_guard guard(mutex_);
  if (auto* tape = recording()) [[unlikely]]
    tape->fail("it copies to the host");
  settle();
  read_now(source, offset, data, size_bytes);
  ++stats_.readbacks;
}

void Stream::read_now(const Buffer& source, uint64_t offset, void* data, uint64_t size_bytes) {
  std::optional<Readback> before;
  for (uint64_t done = 0; done < size_bytes; done += kChunkBytes) {
    const uint64_t chunk = std::min(kChunkBytes, size_bytes - done);
    Readback next = begin_readback(source, offset + done, static_cast<char*>(data) + done, chunk);
    if (before) finish(*before);
    before = std::move(next);
  }
  if (before) finish(*before);
}

// The status goes along with what is read anyway, and only if a launch could have written it.
Readback Stream::begin_readback(const Buffer& source, uint64_t offset, char* data, uint64_t size_bytes) {
  device_.throw_if_lost();
  const Api& api = device_.api;
  const uint64_t words = (size_bytes + 3) / 4 * 4;
  Readback readback;
  readback.data = data;
  readback.size_bytes = size_bytes;
  readback.with_status = !leaves_errors && std::exchange(may_report_, false);
  readback.mapped_bytes = words + (readback.with_status ? kStatusBytes : 0);
  // Another thread may run while this one waits, so the buffer is this readback's until it is done.
  if (!staging_.empty()) {
    readback.staging = std::move(staging_.back());
    staging_.pop_back();
  }
  if (readback.staging.size_bytes < readback.mapped_bytes) {
    WGPUBufferDescriptor descriptor{};
    descriptor.size = std::max(kLeastStagingBytes, BufferPool::rounded_size(readback.mapped_bytes));
    descriptor.usage = WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst;
    readback.staging = {api, api.DeviceCreateBuffer(device_.handle, &descriptor), descriptor.size};
  }
  auto* const buffer = readback.staging.handle();
  end_pass();
  api.CommandEncoderCopyBufferToBuffer(encoder(), source.handle, source.offset + offset, buffer, 0, words);
  if (readback.with_status) {
    api.CommandEncoderCopyBufferToBuffer(encoder(), status_.handle, 0, buffer, words, kStatusBytes);
  }
  submit();
  readback.map = std::make_shared<Readback::Map>();
  WGPUBufferMapCallbackInfo callback{};
  callback.mode = WGPUCallbackMode_AllowProcessEvents;
  callback.userdata1 = new std::shared_ptr<Readback::Map>(readback.map);
  callback.callback = [](WGPUMapAsyncStatus status, WGPUStringView message, void* data, void*) {
    const std::unique_ptr<std::shared_ptr<Readback::Map>> map(static_cast<std::shared_ptr<Readback::Map>*>(data));
    (*map)->status = status;
    (*map)->message = to_string(message);
    (*map)->done = true;
  };
  readback.future = api.BufferMapAsync(buffer, WGPUMapMode_Read, 0, readback.mapped_bytes, callback);
  return readback;
}

void Stream::finish(Readback& readback) {
  try {
    wait(readback.future, readback.map->done);
  } catch (...) {
    may_report_ |= readback.with_status;
    throw;
  }
  const Api& api = device_.api;
  auto* const buffer = readback.staging.handle();
  const bool mapped = readback.map->status == WGPUMapAsyncStatus_Success;
  uint32_t status[kStatusBytes / 4] = {};
  if (mapped) {
    const auto* bytes = static_cast<const char*>(api.BufferGetConstMappedRange(buffer, 0, readback.mapped_bytes));
    std::memcpy(readback.data, bytes, readback.size_bytes);
    if (readback.with_status) std::memcpy(status, bytes + readback.mapped_bytes - kStatusBytes, kStatusBytes);
    api.BufferUnmap(buffer);
    if (staging_.size() < kMostStaging) staging_.push_back(std::move(readback.staging));
  }
  check();
  if (!mapped) throw Error("webgpu: a readback failed: " + readback.map->message);
  if (readback.with_status) check_status(status);
}

void Stream::read_status() {
  if (!may_report_) return;
  uint32_t word = 0;
  read_now(status_, 0, &word, sizeof(word));
}

}  // namespace torch_webgpu
