// The kernels' text: every file below wgsl/, embedded at build time.
#pragma once
#include <string_view>

namespace torch_webgpu {

std::string_view wgsl_text(std::string_view name);  // "types/i64"; throws std::out_of_range

}  // namespace torch_webgpu
