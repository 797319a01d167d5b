// Optimizers with fused=True: one program for all parameters, as many of them in a launch as MultiTensor can bind.
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/item.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "families/launch.h"
#include "families/multi_tensor.h"
#include "families/program.h"
#include "ops/native.h"

namespace torch_webgpu {
namespace {

constexpr const char* kNumbers =
    "rate_bits beta1_bits dampening_bits beta2_bits rest2_bits log_beta1_bits log_beta2_bits decay_bits eps_bits";
constexpr MultiProgram kSteps{"fused_optimizer", "multi_optimizer",
                              "param gradient first second most step:1 rate:1 scale:1 found:1", kNumbers};
// For a parameter that MultiTensor cannot bind.
constexpr Program kStep =
    make_program("fused_optimizer", "fused_optimizer",
                 "T:param! T:gradient! T:first! T:second! T:most! T:step T:rate T:scale", kNumbers);

// Bits of VARIANT, as wgsl/optimizer/fused_optimizer.wgsl names them.
enum : uint32_t {
  kAdam = 0,
  kAdamW = 1,
  kSGD = 2,
  kAdagrad = 3,
  kAmsgrad = 4,
  kMaximize = 8,
  kNesterov = 16,
  kFirst = 32,
  kScaled = 64,
  kRateInTensor = 128,
  kMomentum = 256
};

int64_t bits_of(double value) {
  const auto number = static_cast<float>(value);
  uint32_t bits = 0;
  std::memcpy(&bits, &number, sizeof(bits));
  return bits;
}

// The settings that all parameters of a call share.
struct Step {
  uint32_t variant;
  double beta1, dampening, beta2, decay, eps;  // beta1 is SGD's momentum, and Adagrad's decay of the rate
  at::Tensor rate_tensor{}, scale{}, found{};
  double rate = 0;

  void set_rate(double value) { rate = value; }
  void set_rate(const at::Tensor& value) {
    if (value.device().type() != kDeviceType) return set_rate(value.item<double>());
    rate_tensor = value;
    variant |= kRateInTensor;
  }
  // The gradients' scale and whether one of them overflowed.
  void set_scale(const std::optional<at::Tensor>& given_scale, const std::optional<at::Tensor>& given_found) {
    const bool has_scale = given_scale && given_scale->defined(), has_found = given_found && given_found->defined();
    if (!has_scale && !has_found) return;
    scale = (has_scale ? *given_scale : at::ones({1}, given_found->options())).to(at::kFloat);
    found = (has_found ? *given_found : at::zeros({1}, given_scale->options())).to(at::kFloat);
    variant |= kScaled;
  }

  std::array<int64_t, 9> numbers() const {  // as kNumbers names them
    return {bits_of(rate),      bits_of(beta1),           bits_of(dampening),       bits_of(beta2),
            bits_of(1 - beta2), bits_of(std::log(beta1)), bits_of(std::log(beta2)), bits_of(decay),
            bits_of(eps)};
  }
};

// A parameter with its gradient, its states and the number of the step; those that the optimizer has none of are not
// defined.
struct Parameter {
  at::Tensor param, gradient, first, second, most, count;
};

// Whether all of a parameter's tensors share one dense layout.
bool is_dense(const Parameter& parameter) {
  const auto& [param, gradient, first, second, most, count] = parameter;
  TORCH_CHECK(at::isFloatingType(param.scalar_type()), "fused optimizers take floating point parameters, not ",
              param.scalar_type());
  bool dense = param.is_non_overlapping_and_dense();
  for (const auto* tensor : {&param, &gradient, &first, &second, &most}) {
    if (!tensor->defined()) continue;
    TORCH_CHECK(tensor->device().type() == kDeviceType && tensor->sizes() == param.sizes(),
                "params, grads and states must be on one device and have one shape");
    dense = dense && tensor->strides() == param.strides();
  }
  return dense;
}

bool add(MultiTensor& launch, const Step& step, const Parameter& parameter) {
  const auto& [param, gradient, first, second, most, count] = parameter;
  constexpr uint32_t kStates = 0b11101, kGradient = 0b10, kCount = 0b100000;
  const MultiTensor::Roles roles{
      .singles = 0b111100000, .written = kStates | (step.variant & kScaled ? kGradient : 0), .kept = kStates | kCount};
  return launch.add({param, gradient, first, second, most, count, step.rate_tensor, step.scale, step.found}, roles);
}

// By itself, in memory order, in copies where that differs between the tensors.
void update_alone(const Step& step, const Parameter& parameter, bool dense) {
  const auto& [param, gradient, first, second, most, count] = parameter;
  const at::Tensor tensors[] = {param, gradient, first, second, most};
  const at::Tensor scale =
      step.scale.defined() ? at::stack({step.scale.flatten(), step.found.flatten()}).flatten() : at::Tensor();
  const auto n = step.numbers();
  at::Tensor used[5];
  for (int i = 0; i < 5; ++i) {
    if (tensors[i].defined()) used[i] = dense ? tensors[i] : tensors[i].clone(at::MemoryFormat::Contiguous);
  }
  // In pieces that fit a binding: all tensors are dense, and walked in the order of memory.
  const int64_t size = param.numel(), most_at_once = static_cast<int64_t>(max_binding_bytes() / 4) - 64;
  for (int64_t begin = 0; begin < size; begin += most_at_once) {
    const int64_t length = std::min(most_at_once, size - begin);
    const auto piece = [&](const at::Tensor& tensor) {
      if (!tensor.defined() || length == size) return tensor;
      return at::native::as_strided_tensorimpl(tensor, {length}, {1}, tensor.storage_offset() + begin);
    };
    run(kStep, at::kFloat, {length, 8},
        {piece(used[0]), piece(used[1]), piece(used[2]), piece(used[3]), piece(used[4]), count, step.rate_tensor,
         scale},
        {n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8]}, step.variant);
  }
  for (int i = 0; i < 5 && !dense; ++i) {
    if (tensors[i].defined()) tensors[i].copy_(used[i]);
  }
}

void update(const Step& step, const std::vector<Parameter>& parameters) {
  const auto numbers = step.numbers();
  std::vector<std::pair<const Parameter*, bool>> alone;  // and whether it is dense
  {
    MultiTensor launch(kSteps, {numbers.begin(), numbers.end()}, step.variant);
    for (const Parameter& parameter : parameters) {
      if (parameter.param.numel() == 0) continue;
      const bool dense = is_dense(parameter);
      if (!dense || !add(launch, step, parameter)) alone.emplace_back(&parameter, dense);
    }
    launch.flush();
  }
  for (const auto& [parameter, dense] : alone) update_alone(step, *parameter, dense);
}

at::Tensor at_or_none(at::TensorList tensors, size_t i) { return i < tensors.size() ? tensors[i] : at::Tensor(); }

template <uint32_t Mode, class Rate>
void adam(at::TensorList params, at::TensorList gradients, at::TensorList first, at::TensorList second,
          at::TensorList most, at::TensorList steps, Rate rate, double beta1, double beta2, double decay, double eps,
          bool amsgrad, bool maximize, const std::optional<at::Tensor>& scale, const std::optional<at::Tensor>& found) {
  Step step{Mode | (amsgrad ? kAmsgrad : 0u) | (maximize ? kMaximize : 0u), beta1, 1 - beta1, beta2, decay, eps};
  step.set_rate(rate);
  step.set_scale(scale, found);
  std::vector<Parameter> parameters;
  parameters.reserve(params.size());
  for (size_t i = 0; i < params.size(); ++i) {
    parameters.push_back({params[i], gradients[i], first[i], second[i], amsgrad ? most[i] : at::Tensor(), steps[i]});
  }
  update(step, parameters);
}

template <class Rate>
void sgd(at::TensorList params, at::TensorList gradients, at::TensorList momenta, double decay, double momentum,
         Rate rate, double dampening, bool nesterov, bool maximize, bool is_first,
         const std::optional<at::Tensor>& scale, const std::optional<at::Tensor>& found) {
  Step step{kSGD | (nesterov ? kNesterov : 0u) | (maximize ? kMaximize : 0u) | (is_first ? kFirst : 0u) |
                (momentum != 0 ? kMomentum : 0u),
            momentum,
            1 - dampening,
            0,
            decay,
            0};
  step.set_rate(rate);
  step.set_scale(scale, found);
  std::vector<Parameter> parameters;
  parameters.reserve(params.size());
  for (size_t i = 0; i < params.size(); ++i) {
    const at::Tensor buffer = momentum != 0 ? at_or_none(momenta, i) : at::Tensor();
    parameters.push_back({params[i], gradients[i], buffer, {}, {}, {}});
  }
  update(step, parameters);
}

template <class Rate>
void adagrad(at::TensorList params, at::TensorList gradients, at::TensorList sums, at::TensorList steps, Rate rate,
             double rate_decay, double decay, double eps, bool maximize, const std::optional<at::Tensor>& scale,
             const std::optional<at::Tensor>& found) {
  Step step{kAdagrad | (maximize ? kMaximize : 0u), rate_decay, 0, 0, decay, eps};
  step.set_rate(rate);
  step.set_scale(scale, found);
  std::vector<Parameter> parameters;
  parameters.reserve(params.size());
  for (size_t i = 0; i < params.size(); ++i) {
    parameters.push_back({params[i], gradients[i], sums[i], {}, {}, steps[i]});
  }
  update(step, parameters);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  native<&adam<kAdam, double>>(library, "_fused_adam_");
  library.impl("_fused_adam_.tensor_lr", &adam<kAdam, const at::Tensor&>);
  native<&adam<kAdamW, double>>(library, "_fused_adamw_");
  library.impl("_fused_adamw_.tensor_lr", &adam<kAdamW, const at::Tensor&>);
  native<&adagrad<double>>(library, "_fused_adagrad_");
  library.impl("_fused_adagrad_.tensor_lr", &adagrad<const at::Tensor&>);
  native<&sgd<double>>(library, "_fused_sgd_");
  library.impl("_fused_sgd_.tensor_lr", &sgd<const at::Tensor&>);
}

}  // namespace
}  // namespace torch_webgpu
