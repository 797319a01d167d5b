// Batch normalisation: training with statistics of the batch, evaluation with running ones, and both backwards.
#include <ATen/native/Resize.h>
#include <ATen/native/cpu/mixed_data_type.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>

#include <cstring>
#include <numeric>

#include "families/norm.h"
#include "families/program.h"
#include "families/tensor.h"
#include "ops/native.h"
#include "ops/norm/statistics.h"

namespace torch_webgpu {
namespace {

using OptionalTensor = std::optional<at::Tensor>;
using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
using Four = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;
using ThreeOut = std::tuple<at::Tensor&, at::Tensor&, at::Tensor&>;
using FourOut = std::tuple<at::Tensor&, at::Tensor&, at::Tensor&, at::Tensor&>;

constexpr Program kChannels = make_program(
    "batch_norm", "batch_norm", "T:center T:spread T:weight T:mean! T:scale! T:factor! T:running_mean! T:running_var!",
    "parts size has_weight epsilon_bits momentum_bits");

at::Tensor value_of(const OptionalTensor& tensor) { return tensor.value_or(at::Tensor()); }

int64_t bits_of(double value) {
  const auto number = static_cast<float>(value);
  uint32_t bits = 0;
  std::memcpy(&bits, &number, sizeof(bits));
  return bits;
}

// All dimensions except the channels'.
c10::SmallVector<int64_t, 6> others(const at::Tensor& input) {
  c10::SmallVector<int64_t, 6> dims(input.dim() - 1);
  std::iota(dims.begin(), dims.end(), 1);
  dims[0] = 0;
  return dims;
}

// A vector of channels, to be broadcast to the input.
at::Tensor by_channel(const at::Tensor& vector, const at::Tensor& input) {
  if (!vector.defined()) return vector;
  c10::SmallVector<int64_t, 6> sizes(input.dim(), 1), strides(input.dim(), 0);
  sizes[1] = vector.numel();
  strides[1] = vector.numel() > 1 ? vector.stride(-1) : 1;
  return vector.as_strided(sizes, strides);
}

// Whether each channel of each sample is a long enough run of memory to be walked as a row.
bool has_rows(const at::Tensor& input) { return input.is_contiguous() && input[0][0].numel() >= 16; }

// Partial statistics of a batch: one or several vectors over the channels, each computed from `size` elements.
struct Parts {
  at::Tensor mean{}, moment{};
  int64_t count = 0, size = 0;
};
Parts parts_of(const at::Tensor& input) {
  const int64_t samples = input.size(0), channels = input.size(1), size = input.numel() / channels;
  if (!has_rows(input)) {
    const Spread spread = spread_of(input, others(input));
    return {spread.mean, spread.moment, 1, size};
  }
  Parts parts{empty_tensor({samples, channels}, {}, at::kFloat), empty_tensor({samples, channels}, {}, at::kFloat),
              samples, size / samples};
  norm_rows(NormKind::forward, {.name = "batch_norm",
                                .rows = samples * channels,
                                .length = parts.size,
                                .x = input,
                                .mean = parts.mean,
                                .moment = parts.moment});
  return parts;
}

struct Arguments {
  at::Tensor input, weight, bias, running_mean, running_var;
  bool training;
  double momentum, epsilon;
};

struct Results {
  at::Tensor out{}, mean{}, scale{};
};

at::ScalarType statistics_dtype(const Arguments& args) {
  const at::Tensor& input = args.input;
  TORCH_CHECK_NOT_IMPLEMENTED(at::isFloatingType(input.scalar_type()), "\"batch_norm\" not implemented for '",
                              toString(input.scalar_type()), "'");
  const bool mixed = at::native::is_mixed_type(input, args.weight, args.bias, args.running_mean, args.running_var);
  if (mixed) {
    at::native::check_mixed_data_type(input, args.weight, args.bias, args.running_mean, args.running_var);
  }
  return at::native::param_scalar_type(input, mixed);
}

// Statistics and the transform's factor, in vectors of channels; an evaluation has but a factor. Running statistics are
// updated in place.
at::Tensor channel_statistics(const Arguments& args, const Parts& parts, const Results& results) {
  const int64_t channels = args.input.size(1);
  const at::Tensor factor = empty_tensor({channels}, {}, at::kFloat);
  const auto contiguous = [](const at::Tensor& tensor) { return tensor.defined() ? tensor.contiguous() : tensor; };
  const at::Tensor running_mean = contiguous(args.running_mean), running_var = contiguous(args.running_var);
  run(kChannels, at::kFloat, {channels, 1 + 2 * parts.count},
      {parts.mean, parts.moment, contiguous(args.weight), results.mean, results.scale, factor, running_mean,
       running_var},
      {parts.count, parts.size, args.weight.defined(), bits_of(args.epsilon), bits_of(args.momentum)});
  if (!args.training) return factor;
  for (const auto& [from, to] :
       {std::pair(running_mean, args.running_mean), std::pair(running_var, args.running_var)}) {
    if (to.defined() && !to.is_same(from)) to.copy_(from);
  }
  return factor;
}

void batch_norm(const Arguments& args, const Results& results) {
  const at::Tensor& input = args.input;
  if (input.numel() == 0) return;
  // The transform takes the mean as it was computed, not the half that is saved.
  Results exact = results;
  const bool rounds = args.training && results.mean.scalar_type() != at::kFloat;
  if (rounds) exact.mean = empty_tensor({input.size(1)}, {}, at::kFloat);
  const at::Tensor factor = channel_statistics(args, args.training ? parts_of(input) : Parts{}, exact);
  normalize(results.out, input, by_channel(args.training ? exact.mean : args.running_mean, input),
            by_channel(factor, input), {}, by_channel(args.bias, input));
  if (rounds) results.mean.copy_(exact.mean);
}

Three functional(const Arguments& args) {
  const at::ScalarType dtype = statistics_dtype(args);
  const int64_t saved = args.training ? args.input.size(1) : 0;
  Results results{at::empty_like(args.input, args.input.suggest_memory_format()), empty_tensor({saved}, {}, dtype),
                  empty_tensor({saved}, {}, dtype)};
  batch_norm(args, results);
  return {results.out, results.mean, results.scale};
}

ThreeOut into(const Arguments& args, at::Tensor& out, at::Tensor& mean, at::Tensor& scale) {
  const auto [result, result_mean, result_scale] = functional(args);
  const auto put = [](at::Tensor& target, const at::Tensor& value) {
    at::native::resize_output(target, value.sizes());
    target.copy_(value);
  };
  put(out, result);
  if (args.training) {
    put(mean, result_mean);
    put(scale, result_scale);
  }
  return {out, mean, scale};
}

Arguments arguments(const at::Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
                    const OptionalTensor& running_mean, const OptionalTensor& running_var, bool training,
                    double momentum, double epsilon) {
  return {input,    value_of(weight), value_of(bias), value_of(running_mean), value_of(running_var),
          training, momentum,         epsilon};
}

Three native_batch_norm(const at::Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
                        const OptionalTensor& running_mean, const OptionalTensor& running_var, bool training,
                        double momentum, double epsilon) {
  return functional(arguments(input, weight, bias, running_mean, running_var, training, momentum, epsilon));
}
ThreeOut native_batch_norm_out(const at::Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
                               const OptionalTensor& running_mean, const OptionalTensor& running_var, bool training,
                               double momentum, double epsilon, at::Tensor& out, at::Tensor& mean, at::Tensor& scale) {
  return into(arguments(input, weight, bias, running_mean, running_var, training, momentum, epsilon), out, mean, scale);
}

Three legit(const at::Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias, at::Tensor& running_mean,
            at::Tensor& running_var, bool training, double momentum, double epsilon) {
  return functional(arguments(input, weight, bias, running_mean, running_var, training, momentum, epsilon));
}
ThreeOut legit_out(const at::Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
                   at::Tensor& running_mean, at::Tensor& running_var, bool training, double momentum, double epsilon,
                   at::Tensor& out, at::Tensor& mean, at::Tensor& scale) {
  return into(arguments(input, weight, bias, running_mean, running_var, training, momentum, epsilon), out, mean, scale);
}

Three legit_no_stats(const at::Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias, bool training,
                     double momentum, double epsilon) {
  return functional(arguments(input, weight, bias, {}, {}, training, momentum, epsilon));
}
ThreeOut legit_no_stats_out(const at::Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
                            bool training, double momentum, double epsilon, at::Tensor& out, at::Tensor& mean,
                            at::Tensor& scale) {
  return into(arguments(input, weight, bias, {}, {}, training, momentum, epsilon), out, mean, scale);
}

Four with_update(const at::Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
                 at::Tensor& running_mean, at::Tensor& running_var, double momentum, double epsilon) {
  const auto [out, mean, scale] =
      functional(arguments(input, weight, bias, running_mean, running_var, true, momentum, epsilon));
  return {out, mean, scale, empty_tensor({0}, {}, at::kByte)};
}
Four no_update(const at::Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
               const OptionalTensor& running_mean, const OptionalTensor& running_var, double momentum, double epsilon) {
  const auto [out, mean, scale] =
      functional(arguments(input, weight, bias, running_mean, running_var, false, momentum, epsilon));
  return {out, mean, scale, empty_tensor({0}, {}, at::kByte)};
}
FourOut with_update_out(const at::Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
                        at::Tensor& running_mean, at::Tensor& running_var, double momentum, double epsilon,
                        at::Tensor& out, at::Tensor& mean, at::Tensor& scale, at::Tensor& reserve) {
  into(arguments(input, weight, bias, running_mean, running_var, true, momentum, epsilon), out, mean, scale);
  return {out, mean, scale, reserve};
}

// Sums by channel of the gradients, and of the gradients times the distances from the mean, as broadcast to the input.
std::pair<at::Tensor, at::Tensor> gradient_sums(const at::Tensor& grad, const at::Tensor& input,
                                                const at::Tensor& mean) {
  const auto dims = others(input);
  if (!has_rows(input) || !grad.is_contiguous()) {
    return {at::sum(grad, dims, true, at::kFloat), distance_sums(grad, input, by_channel(mean, input), {}, dims)};
  }
  const int64_t samples = input.size(0), channels = input.size(1);
  const at::Tensor total = empty_tensor({samples, channels}, {}, at::kFloat),
                   moment = empty_tensor({samples, channels}, {}, at::kFloat);
  norm_rows(NormKind::backward, {.name = "batch_norm_backward",
                                 .rows = samples * channels,
                                 .length = input.numel() / (samples * channels),
                                 .x = input,
                                 .grad = grad,
                                 .mean = mean.contiguous(),
                                 .total = total,
                                 .moment = moment,
                                 .period = channels});
  return {by_channel(at::sum(total, {0}), input), by_channel(at::sum(moment, {0}), input)};
}

Three backward(const at::Tensor& grad, const at::Tensor& input, const OptionalTensor& given_weight,
               const OptionalTensor& running_mean, const OptionalTensor& running_var, const OptionalTensor& saved_mean,
               const OptionalTensor& saved_scale, bool training, double epsilon, std::array<bool, 3> wanted) {
  Arguments args{input, value_of(given_weight), {}, value_of(running_mean), value_of(running_var), false, 0, epsilon};
  const at::ScalarType dtype = statistics_dtype(args);
  const int64_t channels = input.size(1);
  const at::Tensor weight = args.weight;
  Three results;
  auto& [grad_input, grad_weight, grad_bias] = results;
  if (wanted[0]) grad_input = at::empty_like(input, input.suggest_memory_format());
  if (input.numel() == 0) {
    if (wanted[1]) grad_weight = at::zeros({channels}, input.options().dtype(dtype));
    if (wanted[2]) grad_bias = at::zeros({channels}, input.options().dtype(dtype));
    return results;
  }
  args.weight = at::Tensor();
  const at::Tensor mean = training ? value_of(saved_mean) : args.running_mean,
                   scale = training ? value_of(saved_scale) : channel_statistics(args, Parts{}, {}),
                   wide_scale = by_channel(scale, input), wide_weight = by_channel(weight, input);
  at::Tensor total, moment;
  if (training || wanted[1] || wanted[2]) std::tie(total, moment) = gradient_sums(grad, input, mean);
  if (wanted[0] && training) {
    const auto weighted = [&](const at::Tensor& sum) { return weight.defined() ? at::mul(sum, wide_weight) : sum; };
    normalize_backward(grad_input, grad, input, by_channel(mean, input), wide_scale, wide_weight, weighted(total),
                       weighted(moment), input.numel() / channels);
  } else if (wanted[0]) {
    at::mul_out(grad_input, grad, weight.defined() ? at::mul(wide_scale, wide_weight) : wide_scale);
  }
  if (wanted[1]) grad_weight = at::mul(moment, wide_scale).to(dtype).reshape({channels});
  if (wanted[2]) grad_bias = total.to(dtype).reshape({channels});
  return results;
}

// Without an update the saved statistics are those of an evaluation.
Three reserved_backward(const at::Tensor& grad, const at::Tensor& input, const at::Tensor& weight,
                        const OptionalTensor& running_mean, const OptionalTensor& running_var,
                        const OptionalTensor& saved_mean, const OptionalTensor& saved_scale, bool update,
                        double epsilon, std::array<bool, 3> wanted, const at::Tensor& /*reserve*/) {
  return backward(grad, input, weight, running_mean, running_var, saved_mean, saved_scale, update, epsilon, wanted);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  native<&native_batch_norm>(library, "native_batch_norm");
  native<&native_batch_norm_out>(library, "native_batch_norm.out");
  native<&legit>(library, "_native_batch_norm_legit");
  native<&legit_out>(library, "_native_batch_norm_legit.out");
  native<&legit_no_stats>(library, "_native_batch_norm_legit.no_stats");
  native<&legit_no_stats_out>(library, "_native_batch_norm_legit.no_stats_out");
  native<&with_update>(library, "_batch_norm_with_update");
  native<&with_update_out>(library, "_batch_norm_with_update.out");
  native<&no_update>(library, "_batch_norm_no_update");
  native<&backward>(library, "native_batch_norm_backward");
  native<&reserved_backward>(library, "batch_norm_backward");
}

}  // namespace
}  // namespace torch_webgpu
