// Threads that work for no caller of their own, such as the one that times kernels.
#pragma once

namespace torch_webgpu {

// On such a thread: what the work of others did wrong is raised where those wait, not here.
inline thread_local bool leaves_errors = false;

}  // namespace torch_webgpu
