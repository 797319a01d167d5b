// Group normalisation, of contiguous and channels-last inputs, and its backward.
#include <ATen/native/cpu/mixed_data_type.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>

#include "families/norm.h"
#include "families/tensor.h"
#include "ops/native.h"
#include "ops/norm/statistics.h"

namespace torch_webgpu {
namespace {

using OptionalTensor = std::optional<at::Tensor>;
using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

at::Tensor contiguous(const OptionalTensor& tensor) {
  return tensor && tensor->defined() ? tensor->contiguous() : at::Tensor();
}

// The input as [samples, groups, channels of a group, places], by whichever memory format it has.
struct Groups {
  int64_t samples, groups, channels, places;

  at::Tensor of(const at::Tensor& tensor) const {
    if (tensor.is_contiguous()) return tensor.view({samples, groups, channels, places});
    auto order = c10::SmallVector<int64_t, 6>{0};
    for (int64_t dim = 2; dim < tensor.dim(); ++dim) order.push_back(dim);
    order.push_back(1);
    return tensor.permute(order).view({samples, places, groups, channels}).permute({0, 2, 3, 1});
  }
  at::Tensor by_group(const at::Tensor& tensor) const { return tensor.view({samples, groups, 1, 1}); }
  at::Tensor by_channel(const at::Tensor& tensor) const {
    return tensor.defined() ? tensor.view({1, groups, channels, 1}) : tensor;
  }
};

void check_floating(const at::Tensor& x, const char* name) {
  TORCH_CHECK_NOT_IMPLEMENTED(at::isFloatingType(x.scalar_type()), "\"", name, "\" not implemented for '",
                              toString(x.scalar_type()), "'");
}

void check_arguments(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, int64_t channels,
                     int64_t groups) {
  TORCH_CHECK(groups > 0, "Expected num groups to be greater than 0, got ", groups);
  TORCH_CHECK(channels % groups == 0,
              "Expected number of channels in input to be divisible by num_groups, but got input of shape ", x.sizes(),
              " and num_groups=", groups);
  TORCH_CHECK(
      !weight.defined() || (weight.dim() == 1 && weight.numel() == channels),
      "Expected weight to be a vector of size equal to the number of channels in input, but got weight of shape ",
      weight.sizes(), " and input of shape ", x.sizes());
  TORCH_CHECK(!bias.defined() || (bias.dim() == 1 && bias.numel() == channels),
              "Expected bias to be a vector of size equal to the number of channels in input, but got bias of shape ",
              weight.sizes(), " and input of shape ", x.sizes());
}

Three forward(const at::Tensor& given, const OptionalTensor& given_weight, const OptionalTensor& given_bias,
              int64_t samples, int64_t channels, int64_t places, int64_t groups, double epsilon) {
  const at::Tensor weight = contiguous(given_weight), bias = contiguous(given_bias);
  check_arguments(given, weight, bias, channels, groups);
  const bool mixed = at::native::is_mixed_type(given, weight, bias);
  if (mixed) at::native::check_mixed_data_type(given, weight, bias);
  check_floating(given, "GroupNormKernelImpl");
  const at::ScalarType dtype = at::native::param_scalar_type(given, mixed);
  const at::Tensor x = given.contiguous(given.suggest_memory_format());
  at::Tensor out = at::empty_like(x);
  if (x.numel() == 0) {
    const auto options = x.options().dtype(dtype);
    return {out, at::zeros({samples, groups}, options), at::full({samples, groups}, std::nan(""), options)};
  }
  const Groups shape{samples, groups, channels / groups, places};
  Spread spread;
  if (x.is_contiguous()) {
    spread = {empty_tensor({samples, groups}, {}, at::kFloat), empty_tensor({samples, groups}, {}, at::kFloat)};
    norm_rows(NormKind::forward, {.name = "group_norm",
                                  .rows = samples * groups,
                                  .length = shape.channels * places,
                                  .x = x,
                                  .mean = spread.mean,
                                  .scale = spread.moment,
                                  .epsilon = epsilon});
  } else {
    spread = spread_of(shape.of(x), {2, 3}, epsilon);
  }
  normalize(shape.of(out), shape.of(x), shape.by_group(spread.mean), shape.by_group(spread.moment),
            shape.by_channel(weight), shape.by_channel(bias));
  return {out, spread.mean.view({samples, groups}).to(dtype), spread.moment.view({samples, groups}).to(dtype)};
}

Three backward(const at::Tensor& given_grad, const at::Tensor& given, const at::Tensor& given_mean,
               const at::Tensor& given_scale, const OptionalTensor& given_weight, int64_t samples, int64_t channels,
               int64_t places, int64_t groups, std::array<bool, 3> wanted) {
  TORCH_CHECK(given.scalar_type() == given_grad.scalar_type(), "Expected scalar types of X and dY are same.");
  if (at::native::is_mixed_type(given, given_mean, given_scale)) {
    at::native::check_mixed_data_type(given, given_mean, given_scale);
  }
  check_floating(given, "GroupNormBackwardKernelImpl");
  const at::Tensor weight = contiguous(given_weight), mean = given_mean.contiguous(), scale = given_scale.contiguous();
  const at::MemoryFormat format = given.suggest_memory_format();
  const auto options = (weight.defined() ? weight : given).options();
  Three results;
  auto& [grad_x, grad_weight, grad_bias] = results;
  if (given.numel() == 0) {
    if (wanted[0]) grad_x = at::zeros_like(given, {}, format);
    if (wanted[1]) grad_weight = at::zeros({channels}, options);
    if (wanted[2]) grad_bias = at::zeros({channels}, options);
    return results;
  }
  const at::Tensor grad = given_grad.contiguous(format), x = given.contiguous(format);
  const Groups shape{samples, groups, channels / groups, places};
  const at::Tensor center = shape.by_group(mean), factor = shape.by_group(scale), gamma = shape.by_channel(weight);
  // Over the places of each channel: the sum of gradients, and that of gradients times distances from the mean.
  at::Tensor total, moment;
  if (x.is_contiguous()) {
    total = empty_tensor({samples, groups, shape.channels, 1}, {}, at::kFloat);
    moment = empty_tensor({samples, groups, shape.channels, 1}, {}, at::kFloat);
    norm_rows(NormKind::backward, {.name = "group_norm_backward",
                                   .rows = samples * channels,
                                   .length = places,
                                   .x = x,
                                   .grad = grad,
                                   .mean = mean,
                                   .total = total,
                                   .moment = moment,
                                   .share = shape.channels});
  } else {
    total = at::sum(shape.of(grad), {3}, true, at::kFloat);
    moment = distance_sums(shape.of(grad), shape.of(x), center, {}, {3});
  }
  const auto dtype = c10::typeMetaToScalarType(options.dtype());
  if (wanted[1]) grad_weight = at::sum(at::mul(moment, factor), {0}, false, dtype).view({channels});
  if (wanted[2]) grad_bias = at::sum(total, {0}, false, dtype).view({channels});
  if (!wanted[0]) return results;
  grad_x = at::empty_like(x);
  const auto of_group = [&](const at::Tensor& sums) {
    return at::sum(gamma.defined() ? at::mul(sums, gamma) : sums, {2}, true, at::kFloat);
  };
  normalize_backward(shape.of(grad_x), shape.of(grad), shape.of(x), center, factor, gamma, of_group(total),
                     of_group(moment), shape.channels * places);
  return results;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  native<&forward>(library, "native_group_norm");
  native<&backward>(library, "native_group_norm_backward");
}

}  // namespace
}  // namespace torch_webgpu
