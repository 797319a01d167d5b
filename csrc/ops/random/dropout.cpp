// Noise on activations: native_dropout, rrelu.
#include <ATen/native/Resize.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones_like.h>

#include "ops/native.h"
#include "ops/random/random.h"

namespace torch_webgpu {
namespace {

constexpr PointwiseRow kMasked = make_row("dropout", "mul(mul(a, b), s0)");
constexpr PointwiseRow kLeaky = make_row("leaky_relu", "select(mul(a, s0), a, gt(a, zero))");
constexpr PointwiseRow kSlope =
    random_row("rrelu", "select(random_uniform(block[lane], s0, s1), one, gt(a, zero))", "random", 1);

at::Tensor masked(const at::Tensor& values, const at::Tensor& mask, double scale) {
  if (!values.is_floating_point()) return at::mul(at::mul(values, mask), scale);
  at::Tensor out;
  auto iterator = at::TensorIteratorConfig()
                      .check_all_same_dtype(false)
                      .declare_static_dtype(values.scalar_type())
                      .add_output(out)
                      .add_const_input(values)
                      .add_const_input(mask)
                      .build();
  const at::Scalar s0(scale);
  elementwise(iterator, kMasked, values.scalar_type(), {&s0});
  return iterator.output();
}

std::tuple<at::Tensor, at::Tensor> native_dropout(const at::Tensor& input, double p, std::optional<bool> train) {
  if (input.numel() == 0) return {input, at::empty_like(input)};
  if (!train.value_or(true)) return {input.clone(), at::ones_like(input, input.options().dtype(at::kBool))};
  const double kept = 1 - p, scale = kept == 0 ? 0 : 1 / kept;
  at::Tensor mask = at::empty_like(input, input.options().dtype(at::kBool));
  mask.bernoulli_(kept);
  if (!input.is_floating_point()) return {input.mul(mask).mul_(scale), mask};
  return {masked(input, mask, scale), mask};
}

at::Tensor& rrelu_with_noise_out(const at::Tensor& self, at::Tensor& noise, const at::Scalar& lower,
                                 const at::Scalar& upper, bool training, OptionalGenerator generator, at::Tensor& out) {
  TORCH_CHECK(self.sym_sizes() == noise.sym_sizes(),
              "noise tensor shape must match self tensor shape. Got self.shape = ", self.sym_sizes(),
              " noise.shape = ", noise.sym_sizes());
  TORCH_CHECK_NOT_IMPLEMENTED(self.is_floating_point(), "\"", training ? "rrelu_with_noise_out_cpu" : "leaky_relu_cpu",
                              "\" not implemented for '", toString(self.scalar_type()), "'");
  if (training) {
    draw(noise, kSlope, at::kFloat, generator, {&lower, &upper}, {unit_shift(self.scalar_type())}, self);
    return at::mul_out(out, self, noise);
  }
  auto iterator = at::TensorIterator::unary_op(out, self);
  const at::Scalar slope((lower.toDouble() + upper.toDouble()) / 2);
  elementwise(iterator, kLeaky, self.scalar_type(), {&slope});
  return out = iterator.output();
}

at::Tensor rrelu_with_noise(const at::Tensor& self, at::Tensor& noise, const at::Scalar& lower, const at::Scalar& upper,
                            bool training, OptionalGenerator generator) {
  at::Tensor out = at::empty_like(self, at::MemoryFormat::Contiguous);
  return rrelu_with_noise_out(self, noise, lower, upper, training, std::move(generator), out);
}

at::Tensor& rrelu_with_noise_(at::Tensor& self, at::Tensor& noise, const at::Scalar& lower, const at::Scalar& upper,
                              bool training, OptionalGenerator generator) {
  return rrelu_with_noise_out(self, noise, lower, upper, training, std::move(generator), self);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  native<&native_dropout>(library, "native_dropout");
  native<&masked>(library, "native_dropout_backward");
  native<&rrelu_with_noise>(library, "rrelu_with_noise");
  native<&rrelu_with_noise_>(library, "rrelu_with_noise_");
  native<&rrelu_with_noise_out>(library, "rrelu_with_noise.out");
}

}  // namespace
}  // namespace torch_webgpu
