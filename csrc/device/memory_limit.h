// How much of the device's memory all tensors together may take.
#pragma once
#include <cstddef>

namespace torch_webgpu {

void set_memory_limit(size_t size_bytes);  // 0: no limit

}  // namespace torch_webgpu
