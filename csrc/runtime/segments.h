// Launches and copies of buffers that share a WGPUBuffer (see buffer_pool.h).
//
// Within one dispatch WebGPU forbids to read one part of a WGPUBuffer and to write another, unless both are declared
// for writing. A launch that would do so reads a copy. That costs a copy for each launch, but no second kernel, and it
// is rare: only tensors that kernels over many tensors keep up to date share WGPUBuffers.
#pragma once
#include "runtime/bind_group_cache.h"

namespace torch_webgpu {

// Of one buffer. What a launch costs matters less to larger ones, and moving them costs more.
constexpr uint64_t kMostGathered = uint64_t{1} << 20;

// Whether a binding that the kernel only reads lies in the segment of one that it writes.
inline bool reads_what_it_writes(const Binding* bindings, const Signature& signature) {
  if (signature.read_only == 0) return false;
  for (uint32_t i = 0; i < signature.bindings; ++i) {
    if (!bindings[i].buffer->segment || !(signature.read_only >> i & 1)) [[likely]]
      continue;
    for (uint32_t other = 0; other < signature.bindings; ++other) {
      if (bindings[other].buffer->handle == bindings[i].buffer->handle && !(signature.read_only >> other & 1))
        return true;
    }
  }
  return false;
}

}  // namespace torch_webgpu
