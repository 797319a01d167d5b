#include "runtime/segments.h"

#include <algorithm>

#include "runtime/stream.h"

namespace torch_webgpu {

bool Stream::move(Buffer& buffer, Buffer& place, bool keeps_contents) {
  const std::lock_guard guard(mutex_);
  device_.throw_if_lost();
  // A launch that was put aside may name a place by its offset in a segment.
  settle();
  if (tape_) return false;
  if (keeps_contents) run(DeferredCopy{&buffer, 0, &place, 0, buffer.size_bytes});
  buffer.exchange_places(place);
  return true;
}

void Stream::encode_copy(WGPUBuffer source, uint64_t source_offset, WGPUBuffer target, uint64_t target_offset,
                         uint64_t size_bytes) {
  end_pass();
  device_.api.CommandEncoderCopyBufferToBuffer(encoder(), source, source_offset, target, target_offset, size_bytes);
  ++stats_.copies;
}

// The queue runs everything in order, so one buffer serves all. Commands that use an outgrown one keep it alive.
void Stream::reserve_scratch(uint64_t size_bytes) {
  if (scratch_.size_bytes >= size_bytes) return;
  if (scratch_.handle) device_.api.BufferRelease(scratch_.handle);
  scratch_.size_bytes = std::max(uint64_t{1} << 16, BufferPool::rounded_size(size_bytes));
  WGPUBufferDescriptor descriptor{};
  descriptor.size = scratch_.size_bytes;
  descriptor.usage = WGPUBufferUsage_Storage | WGPUBufferUsage_CopySrc | WGPUBufferUsage_CopyDst;
  scratch_.handle = device_.api.DeviceCreateBuffer(device_.handle, &descriptor);
}

// The bind group of a launch that reads_what_it_writes(), with copies of what it reads.
WGPUBindGroup Stream::bind_apart(const Binding* bindings, const Signature& signature) {
  std::array<Binding, kMaxBindings> bound;
  std::array<Buffer, kMaxBindings> copies;
  const auto bytes_of = [&](uint32_t i) {
    const Binding& binding = bindings[i];
    return binding.size_bytes ? binding.size_bytes : binding.buffer->size_bytes - binding.window * kWindowBytes;
  };
  uint64_t size_bytes = 0;
  for (uint32_t i = 0; i < signature.bindings; ++i) {
    bound[i] = bindings[i];
    if (!bindings[i].buffer->segment || !(signature.read_only >> i & 1)) continue;
    copies[i].offset = size_bytes;
    copies[i].size_bytes = bytes_of(i);
    bound[i] = {&copies[i], 0, 0};
    size_bytes += (copies[i].size_bytes + kWindowBytes - 1) / kWindowBytes * kWindowBytes;
  }
  reserve_scratch(size_bytes);
  for (uint32_t i = 0; i < signature.bindings; ++i) {
    if (bound[i].buffer != &copies[i]) continue;
    copies[i].handle = scratch_.handle;
    const Buffer& source = *bindings[i].buffer;
    encode_copy(source.handle, source.offset + bindings[i].window * kWindowBytes, scratch_.handle, copies[i].offset,
                copies[i].size_bytes);
  }
  return groups_.create(bound.data(), signature);
}

}  // namespace torch_webgpu
