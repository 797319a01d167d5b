// Quantization as training sees it: numbers go to the nearest step and back. PyTorch's own functions check the
// arguments and call the stubs that are registered here; the observer of moving averages is a program.
#include <ATen/native/quantized/FakeQuantAffine.h>
#include <ATen/ops/_fake_quantize_learnable_per_channel_affine_backward_native.h>
#include <ATen/ops/_fake_quantize_learnable_per_channel_affine_native.h>
#include <ATen/ops/_fake_quantize_learnable_per_tensor_affine_backward_native.h>
#include <ATen/ops/_fake_quantize_learnable_per_tensor_affine_native.h>
#include <ATen/ops/_fake_quantize_per_tensor_affine_cachemask_tensor_qparams_native.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/fake_quantize_per_channel_affine_cachemask_native.h>
#include <ATen/ops/fake_quantize_per_tensor_affine_cachemask_native.h>
#include <ATen/ops/full.h>

#include <cstring>
#include <limits>

#include "families/program.h"
#include "ops/native.h"
#include "ops/pointwise/table.h"

namespace torch_webgpu {
namespace {

constexpr PointwiseRow fake_row(const char* formula, uint16_t flags = PointwiseRow::none) {
  return make_row("fake_quantize", formula, flags, "quantize");
}
constexpr auto kIsMask = PointwiseRow::returns_bool;
// The inverse of the scale, the zero point, the range, the scale.
constexpr PointwiseRow kFake = fake_row("fake_quantized(a, round(a * s0) + s1, s1, s2, s3, s4)");
constexpr PointwiseRow kMask = fake_row("is_in_range(round(a * s0) + s1, s2, s3)", kIsMask);
// With scale and zero point as operands. Zero points that are floats are added before the number is rounded.
#define STEP "round(a * (1.0 / b)) + c"
#define STEP_OF_SUM "round(a * (1.0 / b) + c)"
constexpr PointwiseRow kFakeByTensors = fake_row("fake_quantized(a, " STEP ", c, s0, s1, b)");
constexpr PointwiseRow kMaskByTensors = fake_row("is_in_range(" STEP ", s0, s1)", kIsMask);
constexpr PointwiseRow kFakeByFloats = fake_row("fake_quantized(a, " STEP_OF_SUM ", c, s0, s1, b)");
constexpr PointwiseRow kMaskByFloats = fake_row("is_in_range(" STEP_OF_SUM ", s0, s1)", kIsMask);
// And with a number that switches it off.
constexpr PointwiseRow kFakeIf = fake_row("select(a, fake_quantized(a, " STEP ", c, s0, s1, b), d != 0.0)");
constexpr PointwiseRow kMaskIf = fake_row("d == 0.0 || is_in_range(" STEP ", s0, s1)", kIsMask);
// Of the input, its gradient, the scale and the zero point.
constexpr PointwiseRow kLearned[] = {
    fake_row("learned_gradient(a, b, c, d, s0, s1)"),
    fake_row("mul(scale_gradient(a, b, c, d, s0, s1), s2)"),
    fake_row("mul(zero_point_gradient(a, b, c, d, s0, s1), s2)"),
};
constexpr Program kObserve =
    make_program("moving_average_observer", "observe",
                 "T:low T:high T:running_min! T:running_max! T:scale! u:zero_point! T:observer_on T:fake_quant_on",
                 "weight quant_min quant_max");

void apply(const PointwiseRow& row, const at::Tensor& out, at::TensorList inputs, Scalars scalars) {
  at::TensorIteratorConfig config;
  config.check_all_same_dtype(false).resize_outputs(false).add_output(out);
  for (const auto& input : inputs) config.add_const_input(input);
  auto iterator = config.build();
  elementwise(iterator, row, at::kFloat, scalars);
}

void fake_by_numbers(at::Tensor& output, at::Tensor& mask, const at::Tensor& input, float scale, int64_t zero_point,
                     int64_t quant_min, int64_t quant_max) {
  const at::Scalar inverse(1.0f / scale), zero(zero_point), low(quant_min), high(quant_max), step(scale);
  apply(kFake, output, input, {&inverse, &zero, &low, &high, &step});
  apply(kMask, mask, input, {&inverse, &zero, &low, &high});
}

void fake_by_tensors(at::Tensor& output, at::Tensor& mask, const at::Tensor& input, const at::Tensor& scale,
                     const at::Tensor& zero_point, const at::Tensor& enabled, int64_t quant_min, int64_t quant_max) {
  const at::Scalar low(quant_min), high(quant_max);
  const at::Tensor operands[] = {input, scale, zero_point, enabled};
  apply(kFakeIf, output, operands, {&low, &high});
  apply(kMaskIf, mask, operands, {&low, &high});
}

void fake_by_channels(at::TensorIterator& iterator, at::TensorIterator& mask, int64_t quant_min, int64_t quant_max) {
  const at::Scalar low(quant_min), high(quant_max);
  const bool floats = iterator.tensor(3).is_floating_point();
  elementwise(iterator, floats ? kFakeByFloats : kFakeByTensors, at::kFloat, {&low, &high});
  elementwise(mask, floats ? kMaskByFloats : kMaskByTensors, at::kFloat, {&low, &high});
}

void gradients(at::TensorIterator& iterator, at::TensorList inputs, int64_t quant_min, int64_t quant_max,
               float factor) {
  const at::Scalar low(quant_min), high(quant_max), by(factor);
  for (int i = 0; i < 3; ++i) {
    if (i == 0) {
      apply(kLearned[i], iterator.tensor(i), inputs, {&low, &high});
    } else {
      apply(kLearned[i], iterator.tensor(i), inputs, {&low, &high, &by});
    }
  }
}

void gradients_by_numbers(at::TensorIterator& iterator, float scale, float /*inverse*/, int64_t zero_point,
                          int64_t quant_min, int64_t quant_max, float factor) {
  const at::Tensor& input = iterator.tensor(3);
  const at::Tensor step = at::full({}, scale, input.options()), zero = at::full({}, zero_point, input.options());
  gradients(iterator, {input, iterator.tensor(4), step, zero}, quant_min, quant_max, factor);
}

void gradients_by_channels(at::TensorIterator& iterator, int64_t quant_min, int64_t quant_max, float factor) {
  gradients(iterator, {iterator.tensor(3), iterator.tensor(4), iterator.tensor(5), iterator.tensor(6)}, quant_min,
            quant_max, factor);
}

int64_t bits_of(double value) {
  const auto number = static_cast<float>(value);
  uint32_t bits = 0;
  std::memcpy(&bits, &number, sizeof(bits));
  return bits;
}

std::tuple<at::Tensor, at::Tensor> observe_and_fake(const at::Tensor& self, const at::Tensor& observer_on,
                                                    const at::Tensor& fake_quant_on, at::Tensor& running_min,
                                                    at::Tensor& running_max, at::Tensor& scale, at::Tensor& zero_point,
                                                    double weight, int64_t quant_min, int64_t quant_max, int64_t axis,
                                                    bool per_row, bool symmetric) {
  TORCH_CHECK(!per_row || (axis >= 0 && axis < self.dim()),
              "Error in fused_moving_avg_obs_fq_helper: ch_axis must be "
              "< self.dim()");
  const at::Tensor rows = per_row ? self.transpose(0, axis).flatten(1) : self.reshape({1, -1});
  const auto [low, high] = at::aminmax(rows.to(at::kFloat), 1);
  if (per_row && running_min.numel() != rows.size(0)) {
    const double infinity = std::numeric_limits<double>::infinity();
    running_min.resize_({rows.size(0)}).fill_(infinity);
    running_max.resize_({rows.size(0)}).fill_(-infinity);
    scale.resize_({rows.size(0)}).fill_(1);
    zero_point.resize_({rows.size(0)}).zero_();
  }
  TORCH_CHECK(zero_point.scalar_type() == at::kInt, "zero_point must be int32, not ", zero_point.scalar_type());
  run(kObserve, at::kFloat, {rows.size(0)},
      {low, high, running_min, running_max, scale, zero_point, observer_on, fake_quant_on},
      {bits_of(weight), bits_of(static_cast<double>(quant_min)), bits_of(static_cast<double>(quant_max))},
      symmetric ? 1 : 0);
  at::Tensor output = at::empty_like(self), mask = at::empty_like(self, self.options().dtype(at::kBool));
  at::DimVector shape(self.dim(), 1);
  if (per_row) shape[axis] = rows.size(0);
  fake_by_tensors(output, mask, self, scale.view(shape), zero_point.view(shape), fake_quant_on, quant_min, quant_max);
  return {output, mask};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  native<&at::native::fake_quantize_per_tensor_affine_cachemask>(library, "fake_quantize_per_tensor_affine_cachemask");
  native<&at::native::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams>(
      library, "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams");
  native<&at::native::fake_quantize_per_channel_affine_cachemask>(library,
                                                                  "fake_quantize_per_channel_affine_cachemask");
  native<&at::native::_fake_quantize_learnable_per_tensor_affine>(library,
                                                                  "_fake_quantize_learnable_per_tensor_affine");
  native<&at::native::_fake_quantize_learnable_per_tensor_affine_backward>(
      library, "_fake_quantize_learnable_per_tensor_affine_backward");
  native<&at::native::_fake_quantize_learnable_per_channel_affine>(library,
                                                                   "_fake_quantize_learnable_per_channel_affine");
  native<&at::native::_fake_quantize_learnable_per_channel_affine_backward>(
      library, "_fake_quantize_learnable_per_channel_affine_backward");
  native<&observe_and_fake>(library, "_fused_moving_avg_obs_fq_helper");
}

}  // namespace
}  // namespace torch_webgpu

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(fake_quant_tensor_cachemask_stub, &torch_webgpu::fake_by_numbers)
REGISTER_PRIVATEUSE1_DISPATCH(fake_quant_tensor_cachemask_tensor_qparams_stub, &torch_webgpu::fake_by_tensors)
REGISTER_PRIVATEUSE1_DISPATCH(fake_quant_per_channel_cachemask_stub, &torch_webgpu::fake_by_channels)
REGISTER_PRIVATEUSE1_DISPATCH(fake_quant_grad_learnable_tensor_stub, &torch_webgpu::gradients_by_numbers)
REGISTER_PRIVATEUSE1_DISPATCH(fake_quant_grad_learnable_channel_stub, &torch_webgpu::gradients_by_channels)
}  // namespace at::native
