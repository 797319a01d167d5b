// Ops without a kernel of ours run on the CPU: counted, visible, or refused.
#pragma once
#include <cstdint>
#include <map>
#include <string>

namespace torch_webgpu {

enum class FallbackMode { quiet, warn, error };

std::map<std::string, uint64_t> fallback_counts();
void reset_fallback_counts();
FallbackMode fallback_mode();
void set_fallback_mode(FallbackMode mode);

}  // namespace torch_webgpu
