// Ops without a kernel of ours run on the CPU: counted, visible, or refused.
#pragma once
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <cstdint>
#include <map>
#include <string>

namespace torch_webgpu {

enum class FallbackMode { quiet, warn, error };

void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack);

std::map<std::string, uint64_t> fallback_counts();
void reset_fallback_counts();
FallbackMode fallback_mode();
void set_fallback_mode(FallbackMode mode);

}  // namespace torch_webgpu
