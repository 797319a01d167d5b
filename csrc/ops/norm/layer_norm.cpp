// layer_norm and rms_norm, over the last dimensions, and their backwards.
#include <ATen/native/cpu/mixed_data_type.h>
#include <ATen/native/layer_norm.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros_like.h>

#include <limits>

#include "families/norm.h"
#include "families/structured.h"
#include "ops/native.h"
#include "ops/norm/statistics.h"

namespace torch_webgpu {
namespace {

using OptionalTensor = std::optional<at::Tensor>;
using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
using Two = std::tuple<at::Tensor, at::Tensor>;

at::Tensor value_of(const OptionalTensor& tensor) { return tensor.value_or(at::Tensor()); }
at::Tensor contiguous(const at::Tensor& tensor) { return tensor.defined() ? tensor.contiguous() : tensor; }

void check_floating(const at::Tensor& input, const char* name) {
  TORCH_CHECK_NOT_IMPLEMENTED(at::isFloatingType(input.scalar_type()), "\"", name, "\" not implemented for '",
                              toString(input.scalar_type()), "'");
}

// The shape of statistics: ones in place of what was normalized.
c10::SmallVector<int64_t, 6> statistics_shape(const at::Tensor& input, at::IntArrayRef normalized) {
  c10::SmallVector<int64_t, 6> shape(input.sizes().begin(), input.sizes().end());
  std::fill(shape.end() - static_cast<int64_t>(normalized.size()), shape.end(), 1);
  return shape;
}

Three forward(const at::Tensor& input, at::IntArrayRef normalized, const OptionalTensor& weight,
              const OptionalTensor& bias, double epsilon) {
  const at::Tensor gamma = contiguous(value_of(weight)), beta = contiguous(value_of(bias));
  const bool mixed = at::native::is_mixed_type(input, gamma, beta);
  if (mixed) at::native::check_mixed_data_type(input, gamma, beta);
  const auto [rows, length] = at::native::_check_layer_norm_inputs(input, normalized, gamma, beta);
  check_floating(input, "LayerNormKernelImpl");
  const auto shape = statistics_shape(input, normalized);
  const at::ScalarType dtype = at::native::param_scalar_type(input, mixed);
  at::Tensor out = empty_tensor(input.sizes(), {}, input.scalar_type()), mean = empty_tensor(shape, {}, dtype),
             scale = empty_tensor(shape, {}, dtype);
  norm_rows(NormKind::forward, {.name = "layer_norm",
                                .rows = rows,
                                .length = length,
                                .out = out,
                                .x = input.contiguous(),
                                .weight = gamma,
                                .bias = beta,
                                .mean = mean,
                                .scale = scale,
                                .epsilon = epsilon});
  return {out, mean, scale};
}

std::tuple<at::Tensor&, at::Tensor&, at::Tensor&> forward_out(const at::Tensor& input, at::IntArrayRef normalized,
                                                              const OptionalTensor& weight, const OptionalTensor& bias,
                                                              double epsilon, at::Tensor& out, at::Tensor& mean,
                                                              at::Tensor& scale) {
  const auto results = forward(input, normalized, weight, bias, epsilon);
  const auto put = [](at::Tensor& target, const at::Tensor& result) {
    resize_out(target, result.sizes(), {}, result.options());
    target.copy_(result);
  };
  put(out, std::get<0>(results));
  put(mean, std::get<1>(results));
  put(scale, std::get<2>(results));
  return {out, mean, scale};
}

// The gradient of the weight: sums over rows. `mean` is undefined for rms_norm, which measures distances from zero.
at::Tensor weight_gradient(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& mean, const at::Tensor& scale,
                           int64_t rows, const at::Tensor& weight) {
  const auto flat = [&](const at::Tensor& tensor) { return tensor.reshape({rows, -1}); };
  const at::Tensor center = mean.defined() ? flat(mean) : at::Tensor();
  const at::Tensor sums = distance_sums(flat(grad), flat(x), center, flat(scale), 0);
  return sums.to(weight.scalar_type()).view(weight.sizes());
}

Three backward(const at::Tensor& given_grad, const at::Tensor& input, at::IntArrayRef normalized,
               const at::Tensor& mean, const at::Tensor& scale, const OptionalTensor& weight,
               const OptionalTensor& bias, std::array<bool, 3> wanted) {
  const at::Tensor gamma = contiguous(value_of(weight)), beta = contiguous(value_of(bias));
  const auto [rows, length] = at::native::_check_layer_norm_inputs(input, normalized, gamma, beta);
  check_floating(input, "LayerNormBackwardKernelImpl");
  const at::Tensor grad = given_grad.contiguous(), x = input.contiguous();
  Three results;
  auto& [grad_input, grad_weight, grad_bias] = results;
  if (wanted[0]) {
    grad_input = empty_tensor(x.sizes(), {}, x.scalar_type());
    norm_rows(NormKind::backward, {.name = "layer_norm_backward",
                                   .rows = rows,
                                   .length = length,
                                   .out = grad_input,
                                   .x = x,
                                   .grad = grad,
                                   .weight = gamma,
                                   .mean = mean.contiguous(),
                                   .scale = scale.contiguous()});
  }
  const bool empty = rows == 0 || length == 0;
  if (wanted[1]) grad_weight = empty ? at::zeros_like(gamma) : weight_gradient(grad, x, mean, scale, rows, gamma);
  if (wanted[2]) {
    grad_bias = empty ? at::zeros_like(beta)
                      : at::sum(grad.view({rows, length}), {0}, false, beta.scalar_type()).view(beta.sizes());
  }
  return results;
}

Two rms_norm(const at::Tensor& input, at::IntArrayRef normalized, const OptionalTensor& weight,
             std::optional<double> epsilon) {
  const at::Tensor gamma = contiguous(value_of(weight));
  const auto [rows, length] = at::native::_check_layer_norm_inputs(input, normalized, gamma, {});
  check_floating(input, "rms_norm");
  at::Tensor out = empty_tensor(input.sizes(), {}, input.scalar_type()),
             scale = empty_tensor(statistics_shape(input, normalized), {}, at::kFloat);
  norm_rows(NormKind::forward, {.name = "rms_norm",
                                .rows = rows,
                                .length = length,
                                .out = out,
                                .x = input.contiguous(),
                                .weight = gamma,
                                .scale = scale,
                                .epsilon = epsilon.value_or(std::numeric_limits<float>::epsilon()),
                                .root_mean_square = true});
  return {out, scale};
}

Two rms_norm_backward(const at::Tensor& given_grad, const at::Tensor& input, at::IntArrayRef normalized,
                      const at::Tensor& scale, const OptionalTensor& weight, std::array<bool, 2> wanted) {
  const at::Tensor gamma = contiguous(value_of(weight));
  const auto [rows, length] = at::native::_check_layer_norm_inputs(input, normalized, gamma, {});
  const at::Tensor grad = given_grad.contiguous(), x = input.contiguous();
  Two results;
  auto& [grad_input, grad_weight] = results;
  if (wanted[0]) {
    grad_input = empty_tensor(x.sizes(), {}, x.scalar_type());
    norm_rows(NormKind::backward, {.name = "rms_norm_backward",
                                   .rows = rows,
                                   .length = length,
                                   .out = grad_input,
                                   .x = x,
                                   .grad = grad,
                                   .weight = gamma,
                                   .scale = scale.contiguous(),
                                   .root_mean_square = true});
  }
  if (wanted[1] && gamma.defined()) {
    const bool empty = rows == 0 || length == 0;
    grad_weight = empty ? at::zeros_like(gamma) : weight_gradient(grad, x, {}, scale, rows, gamma);
  }
  return results;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  native<&forward>(library, "native_layer_norm");
  native<&forward_out>(library, "native_layer_norm.out");
  native<&backward>(library, "native_layer_norm_backward");
  native<&rms_norm>(library, "_fused_rms_norm");
  native<&rms_norm_backward>(library, "_fused_rms_norm_backward");
}

}  // namespace
}  // namespace torch_webgpu
