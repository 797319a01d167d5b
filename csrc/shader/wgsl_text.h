// The files below wgsl/, by name without folder and suffix; tools/embed_wgsl.py writes their table.
#pragma once
#include <span>
#include <string_view>

namespace torch_webgpu {

struct WgslFile {
  std::string_view text;
  std::span<const std::string_view> needs;  // files whose functions this one calls, from its line `// needs:`
  bool has_loops;                           // from its line `// loops:`: its functions take long to compile
};
const WgslFile& wgsl_file(std::string_view name);  // throws std::out_of_range

// Of all that decides on the texts of kernels and on the choice among them: another one means other kernels.
std::string_view kernels_hash();

}  // namespace torch_webgpu
