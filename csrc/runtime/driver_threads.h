// The threads on which a software driver runs kernels.
#pragma once

namespace torch_webgpu {

// Gives each of llvmpipe's threads for kernels a core of its own, where there are as many as this process has cores.
// The system would at times leave two of them on one core, and a kernel, of which each takes a fixed part, takes twice
// its time. Does nothing where there are no such threads, and with TORCH_WEBGPU_PIN=0.
void spread_driver_threads();

}  // namespace torch_webgpu
