// The threads on which a software driver runs kernels.
#pragma once

namespace torch_webgpu {

// Gives each of llvmpipe's threads for kernels a core of its own, where there are as many as this process has cores.
// Each takes a fixed part of a kernel; left to the system, which seems to put two on one core at times, a kernel now
// and then takes twice its time. Does nothing where there are no such threads, and with TORCH_WEBGPU_PIN=0.
void spread_driver_threads();

}  // namespace torch_webgpu
