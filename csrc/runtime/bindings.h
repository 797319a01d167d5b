// Which storage buffers a text declares to read alone. Between kernels that share only those no barrier is needed, and
// GPUs may cache what is loaded.
#pragma once
#include <cstdint>
#include <string>

namespace torch_webgpu {

// A bit for each binding of group 0 that is declared as "@group(0) @binding(1) var<storage, read> ", as our printers
// do.
uint32_t declared_read_only(const std::string& wgsl);

// Declares all of them for writing too.
void declare_all_written(std::string& wgsl);

}  // namespace torch_webgpu
