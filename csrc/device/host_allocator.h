// Host memory that `pin_memory()` gives.
#pragma once
#include <ATen/core/CachingHostAllocator.h>

namespace torch_webgpu {

at::HostAllocator* host_allocator();
bool is_pinned(const void* data);

}  // namespace torch_webgpu
