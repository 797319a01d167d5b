// The device with its pool, its kernels and its stream: opened once, on first use, and never torn down, because tensors
// and driver threads may outlive every other static.
#pragma once
#include "runtime/buffer_pool.h"
#include "runtime/device.h"
#include "runtime/kernel_cache.h"
#include "runtime/stream.h"

namespace torch_webgpu {

struct Runtime {
  explicit Runtime(Adapter adapter)
      : device(std::move(adapter)), kernels(device), stream(device, kernels), pool(device, stream) {}

  Device device;
  KernelCache kernels;
  Stream stream;
  BufferPool pool;
};

}  // namespace torch_webgpu
