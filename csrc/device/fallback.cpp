#include "device/fallback.h"

#include <ATen/native/CPUFallback.h>
#include <torch/library.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <string_view>

#include "device/allocator.h"

namespace torch_webgpu {
namespace {

FallbackMode mode_from_environment() {
  const char* value = std::getenv("TORCH_WEBGPU_FALLBACK");
  const std::string_view text = value && *value ? value : "warn";
  if (text == "error") return FallbackMode::error;
  if (text == "quiet") return FallbackMode::quiet;
  TORCH_CHECK(text == "warn", "TORCH_WEBGPU_FALLBACK is '", text, "'; it may be error, warn or quiet");
  return FallbackMode::warn;
}

struct Counts {
  std::mutex mutex;
  std::map<std::string, uint64_t> by_op;
};

Counts& counts() {
  static auto* instance = new Counts;
  return *instance;
}

std::atomic<FallbackMode>& mode() {
  static std::atomic<FallbackMode> current{mode_from_environment()};
  return current;
}

// The tensors among the arguments, which are the last on the stack.
c10::SmallVector<const at::Tensor*, 8> tensors_of(const torch::jit::Stack& stack, size_t arguments) {
  c10::SmallVector<const at::Tensor*, 8> tensors;
  for (size_t i = stack.size() - arguments; i < stack.size(); ++i) {
    if (stack[i].isTensor() && stack[i].toTensor().defined()) tensors.push_back(&stack[i].toTensor());
  }
  return tensors;
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>()); }

}  // namespace

void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::string name = c10::toString(op.operator_name());
  TORCH_CHECK_NOT_IMPLEMENTED(
      mode() != FallbackMode::error, "The operator '", name,
      "' has no webgpu kernel yet, and TORCH_WEBGPU_FALLBACK=error forbids running it on the CPU.");
  bool first = false;
  {
    const std::lock_guard guard(counts().mutex);
    first = counts().by_op[name]++ == 0;
  }
  if (first && mode() == FallbackMode::warn) {
    TORCH_WARN("The operator '", name,
               "' has no webgpu kernel yet and runs on the CPU. See torch.webgpu.cpu_fallbacks(); set "
               "TORCH_WEBGPU_FALLBACK=error to forbid it or =quiet to silence this.");
  }
  check_same_device(tensors_of(*stack, op.schema().arguments().size()));
  at::native::cpu_fallback(op, stack, /*error_on_views=*/true);
}

std::map<std::string, uint64_t> fallback_counts() {
  const std::lock_guard guard(counts().mutex);
  return counts().by_op;
}

void reset_fallback_counts() {
  const std::lock_guard guard(counts().mutex);
  counts().by_op.clear();
}

FallbackMode fallback_mode() { return mode(); }
void set_fallback_mode(FallbackMode value) { mode() = value; }

}  // namespace torch_webgpu
