#include "device/fallback.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/native/CPUFallback.h>
#include <c10/core/ScalarType.h>
#include <torch/library.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <string_view>

#include "device/allocator.h"
#include "device/context.h"
#include "device/dtypes.h"
#include "device/sparse_fallback.h"

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

// " for float64", where the dtype of an argument is why the call is here.
std::string reason_of(const torch::jit::Stack& stack, size_t arguments) {
  for (size_t i = stack.size() - arguments; i < stack.size(); ++i) {
    std::vector<at::Tensor> tensors;
    if (stack[i].isTensor()) tensors.push_back(stack[i].toTensor());
    if (stack[i].isTensorList()) tensors = stack[i].toTensorVector();
    for (const at::Tensor& tensor : tensors) {
      if (!tensor.defined() || tensor.device().type() != kDeviceType) continue;
      if (!contains(kComputed, tensor.scalar_type())) {
        return " for " + std::string(c10::getDtypeNames(tensor.scalar_type()).first);
      }
    }
  }
  return "";
}

// Counts the call, or raises where fallbacks are forbidden.
void count(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  const std::string name = c10::toString(op.operator_name());
  TORCH_CHECK_NOT_IMPLEMENTED(mode() != FallbackMode::error, "The operator '", name, "' has no webgpu kernel",
                              reason_of(stack, op.schema().arguments().size()),
                              " yet, and TORCH_WEBGPU_FALLBACK=error forbids running it on the CPU.");
  bool first = false;
  {
    const std::lock_guard guard(counts().mutex);
    first = counts().by_op[name]++ == 0;
  }
  if (first && mode() == FallbackMode::warn) {
    TORCH_WARN("The operator '", name, "' has no webgpu kernel", reason_of(stack, op.schema().arguments().size()),
               " yet and runs on the CPU. See torch.webgpu.cpu_fallbacks(); set "
               "TORCH_WEBGPU_FALLBACK=error to forbid it or =quiet to silence this.");
  }
}

// The op that the CPU has a kernel for: convolutions reach a device under names of its own.
c10::OperatorHandle host_op(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto named = [](const char* name) { return c10::Dispatcher::singleton().findSchemaOrThrow(name, ""); };
  const std::string& name = op.operator_name().name;
  if (name == "aten::convolution_overrideable") return named("aten::convolution");
  if (name != "aten::convolution_backward_overrideable") return op;
  // gradient, input, weight, [bias_sizes], stride, padding, dilation, transposed, output_padding, groups, mask
  const auto given = stack->end() - static_cast<std::ptrdiff_t>(op.schema().arguments().size());
  const at::Tensor& weight = given[2].toTensor();
  const bool transposed = given[6].toBool();
  const int64_t channels = transposed ? weight.size(1) * given[8].toInt() : weight.size(0);
  stack->insert(given + 3, c10::IValue(c10::List<int64_t>({channels})));
  return named("aten::convolution_backward");
}

// The same value with each tensor of one kind of device on the other.
c10::IValue moved(const c10::IValue& value, bool to_host) {
  const auto move = [&](const at::Tensor& tensor) {
    if (!tensor.defined() || tensor.is_cpu() == to_host) return tensor;
    return to_host ? tensor.cpu() : tensor.to(kDevice);
  };
  if (value.isTensor()) return move(value.toTensor());
  if (value.isDevice() && to_host) return c10::Device(at::kCPU);
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(move(tensor));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor> tensor : value.toOptionalTensorList()) {
      list.push_back(tensor ? std::optional<at::Tensor>(move(*tensor)) : std::nullopt);
    }
    return list;
  }
  return value;
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>()); }

}  // namespace

void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  count(op, *stack);
  check_same_device(tensors_of(*stack, op.schema().arguments().size()));
  at::native::cpu_fallback(host_op(op, stack), stack, /*error_on_views=*/true);
  // PyTorch puts the results where the first tensor is, which may be a number of the host: the 2 of `2 - x`.
  const auto& returns = op.schema().returns();
  for (size_t i = 0; i < returns.size(); ++i) {
    c10::IValue& result = stack->end()[static_cast<std::ptrdiff_t>(i) - static_cast<std::ptrdiff_t>(returns.size())];
    if (!returns[i].alias_info()) result = moved(result, /*to_host=*/false);
  }
}

void run_sparse_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  count(op, *stack);
  const auto& schema = op.schema();
  const size_t argument_count = schema.arguments().size();
  check_same_device(tensors_of(*stack, argument_count));
  const torch::jit::Stack given(stack->end() - static_cast<std::ptrdiff_t>(argument_count), stack->end());
  torch::jit::Stack host;
  for (const c10::IValue& value : given) host.push_back(moved(value, /*to_host=*/true));
  torch::jit::Stack results = host;
  {
    const at::AutoDispatchBelowAutograd below;
    op.callBoxed(&results);
  }
  torch::jit::drop(*stack, argument_count);
  for (size_t i = 0; i < argument_count; ++i) {
    const auto* alias = schema.arguments()[i].alias_info();
    if (!alias || !alias->isWrite() || !given[i].isTensor()) continue;
    at::Tensor written = given[i].toTensor();
    if (written.layout() == at::kStrided) written.resize_(host[i].toTensor().sizes());
    written.copy_(host[i].toTensor());
  }
  for (const c10::IValue& result : results) {
    size_t same = argument_count;  // an argument that is written is returned itself
    for (size_t i = 0; i < argument_count && result.isTensor(); ++i) {
      if (host[i].isTensor() && host[i].toTensor().is_same(result.toTensor())) same = i;
    }
    stack->push_back(same < argument_count ? given[same] : moved(result, /*to_host=*/false));
  }
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
