// The two ops of torch.amp.GradScaler: unscaling and checking gradients, and updating the scale. Neither waits.
#include <torch/library.h>

#include "families/multi_tensor.h"
#include "families/program.h"
#include "ops/native.h"

namespace torch_webgpu {
namespace {

constexpr MultiProgram kUnscale{"unscale", "multi_unscale", "gradient found:1 inverse:1", ""};
constexpr Program kUpdateScale =
    make_program("update_scale", "update_scale", "T:scale! u:tracker! T:found", "growth backoff interval");

void check_number(const at::Tensor& tensor, const char* name, at::ScalarType dtype) {
  TORCH_CHECK(tensor.device().type() == kDeviceType, name, " must be a webgpu tensor.");
  TORCH_CHECK(tensor.numel() == 1, name, " must be a 1-element tensor.");
  TORCH_CHECK(tensor.scalar_type() == dtype, name, " must be of dtype ", dtype, ".");
}

void unscale_(at::TensorList gradients, at::Tensor& found, const at::Tensor& inverse) {
  if (gradients.empty()) return;
  check_number(inverse, "inv_scale", at::kFloat);
  check_number(found, "found_inf", at::kFloat);
  constexpr MultiTensor::Roles kRoles{.singles = 0b110, .written = 0b011};
  MultiTensor launch(kUnscale, {}, 0);
  for (const auto& gradient : gradients) {
    TORCH_CHECK(gradient.device().type() == kDeviceType, "one of scaled_grads was not a webgpu tensor.");
    TORCH_CHECK(gradient.layout() == at::kStrided, "one of scaled_grads was not a strided tensor.");
    TORCH_CHECK(at::isFloatingType(gradient.scalar_type()), "scaled_grads must be of a floating point dtype.");
    if (gradient.numel() == 0) continue;
    if (gradient.is_non_overlapping_and_dense() && launch.add({gradient, found, inverse}, kRoles)) continue;
    const at::Tensor copy = gradient.clone(at::MemoryFormat::Contiguous);
    TORCH_CHECK(launch.add({copy, found, inverse}, kRoles), "a gradient of ", gradient.numel(),
                " elements is larger than the adapter binds");
    launch.flush();
    gradient.copy_(copy);
  }
  launch.flush();
}

int64_t bits_of(double value) {
  uint32_t word = 0;
  write_scalar(&word, Compute::f32, value);
  return word;
}

at::Tensor& update_scale_(at::Tensor& scale, at::Tensor& tracker, const at::Tensor& found, double growth,
                          double backoff, int64_t interval) {
  check_number(scale, "current_scale", at::kFloat);
  check_number(tracker, "growth_tracker", at::kInt);
  check_number(found, "found_inf", at::kFloat);
  run(kUpdateScale, at::kFloat, {1}, {scale, tracker, found}, {bits_of(growth), bits_of(backoff), interval});
  return scale;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  native<&unscale_>(library, "_amp_foreach_non_finite_check_and_unscale_");
  native<&update_scale_>(library, "_amp_update_scale_");
}

}  // namespace
}  // namespace torch_webgpu
