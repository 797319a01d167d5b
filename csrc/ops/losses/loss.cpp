// Losses that are a pointwise formula and a mean or a sum.
#include <ATen/core/Reduction.h>
#include <ATen/native/BinaryOps.h>
#include <ATen/native/PointwiseOps.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/huber_loss_backward_native.h>
#include <ATen/ops/huber_loss_native.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mse_loss_backward_native.h>
#include <ATen/ops/mse_loss_native.h>
#include <ATen/ops/smooth_l1_loss_backward_native.h>
#include <ATen/ops/smooth_l1_loss_native.h>
#include <ATen/ops/sum.h>

#include "ops/pointwise/table.h"

namespace torch_webgpu {
namespace {

using OptionalTensor = std::optional<at::Tensor>;

// The CPU also refuses an input outside [0, 1], which a device could only see by waiting for it.
constexpr PointwiseRow kCrossEntropy =
    make_row("binary_cross_entropy", "(b - 1.0) * max(log1p(neg(a)), -100.0) - b * max(log(a), -100.0)", kFloats);
constexpr PointwiseRow kCrossEntropyWeighted =
    make_row("binary_cross_entropy", "c * ((b - 1.0) * max(log1p(neg(a)), -100.0) - b * max(log(a), -100.0))", kFloats);
constexpr PointwiseRow kCrossEntropyBackward =
    make_row("binary_cross_entropy_backward", "s0 * a * (b - c) / max((1.0 - b) * b, 1e-12)", kFloats);
constexpr PointwiseRow kCrossEntropyBackwardWeighted =
    make_row("binary_cross_entropy_backward", "s0 * d * a * (b - c) / max((1.0 - b) * b, 1e-12)", kFloats);

bool has(const OptionalTensor& tensor) { return tensor && tensor->defined(); }

at::Tensor& cross_entropy_out(const at::Tensor& self, const at::Tensor& target, const OptionalTensor& weight,
                              int64_t reduction, at::Tensor& out) {
  at::Tensor loss = reduction == at::Reduction::None ? out : at::empty_like(self);
  at::native::resize_output(loss, self.sizes());
  at::TensorIteratorConfig config;
  config.add_output(loss).add_const_input(self).add_const_input(target);
  if (has(weight)) config.add_const_input(*weight);
  auto iterator = config.build();
  elementwise(iterator, has(weight) ? kCrossEntropyWeighted : kCrossEntropy, iterator.common_dtype());
  if (reduction == at::Reduction::Mean) at::mean_out(out, loss, at::IntArrayRef{});
  if (reduction == at::Reduction::Sum) at::sum_out(out, loss, at::IntArrayRef{});
  return out;
}
at::Tensor cross_entropy(const at::Tensor& self, const at::Tensor& target, const OptionalTensor& weight,
                         int64_t reduction) {
  at::Tensor out = reduction == at::Reduction::None ? at::empty_like(self) : at::empty({0}, self.options());
  return cross_entropy_out(self, target, weight, reduction, out);
}

at::Tensor& cross_entropy_backward_out(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& target,
                                       const OptionalTensor& weight, int64_t reduction, at::Tensor& grad_input) {
  at::native::resize_output(grad_input, self.sizes());
  at::TensorIteratorConfig config;
  config.add_output(grad_input).add_const_input(grad).add_const_input(self).add_const_input(target);
  if (has(weight)) config.add_const_input(*weight);
  auto iterator = config.build();
  const at::Scalar share(reduction == at::Reduction::Mean ? 1.0 / static_cast<double>(self.numel()) : 1.0);
  elementwise(iterator, has(weight) ? kCrossEntropyBackwardWeighted : kCrossEntropyBackward, iterator.common_dtype(),
              {&share});
  return grad_input;
}
at::Tensor cross_entropy_backward(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& target,
                                  const OptionalTensor& weight, int64_t reduction) {
  at::Tensor grad_input = at::empty_like(self);
  return cross_entropy_backward_out(grad, self, target, weight, reduction, grad_input);
}

// Registers a stub; error messages use the name of the CPU's kernel.
#define LOSS(stub, name, formula)                                                                      \
  {                                                                                                    \
    static constexpr PointwiseRow row = make_row(name, formula, kFloats);                              \
    at::native::stub.set_privateuse1_dispatch_ptr(&Stub<row, decltype(at::native::stub)::FnPtr>::run); \
  }

// clang-format off
TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  NATIVE( mse_loss, , out,         mse_loss_out)
  NATIVE( smooth_l1_loss, , out,   smooth_l1_loss_out)
  LOSS(   mse_stub,                "mse_cpu",                     "(a - b) * (a - b)")
  LOSS(   mse_backward_stub,       "mse_backward_cpu_out",        "s0 * (a - b) * c")
  LOSS(   smooth_l1_stub,          "smooth_l1_cpu",               "select(abs(a - b) - 0.5 * s0, 0.5 * (a - b) * (a - b) / s0, abs(a - b) < s0)")
  LOSS(   smooth_l1_backward_stub, "smooth_l1_backward_cpu_out",  "select(s0 * (a - b) * c / s1, s0 * c * sign(a - b), abs(a - b) >= s1)")
  LOSS(   huber_stub,              "huber_cpu",                   "select(s0 * (abs(a - b) - 0.5 * s0), 0.5 * (a - b) * (a - b), abs(a - b) <= s0)")
  LOSS(   huber_backward_stub,     "huber_backward_cpu_out",      "select(s0 * (a - b) * c, s0 * c * s1 * sign(a - b), abs(a - b) > s1)")
  native<&at::native::mse_loss_backward>(library, "mse_loss_backward");
  native<&at::native::mse_loss_backward_out>(library, "mse_loss_backward.grad_input");
  native<&at::native::smooth_l1_loss_backward_out>(library, "smooth_l1_loss_backward.grad_input");
  native<&at::native::huber_loss>(library, "huber_loss");
  native<&at::native::huber_loss_out>(library, "huber_loss.out");
  native<&at::native::huber_loss_backward_out>(library, "huber_loss_backward.out");
  native<&cross_entropy>(library, "binary_cross_entropy");
  native<&cross_entropy_out>(library, "binary_cross_entropy.out");
  native<&cross_entropy_backward>(library, "binary_cross_entropy_backward");
  native<&cross_entropy_backward_out>(library, "binary_cross_entropy_backward.grad_input");
}
// clang-format on

}  // namespace
}  // namespace torch_webgpu
