// Gamma, Dirichlet, Poisson and binomial distributions, whose samples are drawn until one is accepted, and the
// gradients of gamma and Dirichlet samples.
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/sum.h>

#include <limits>

#include "ops/native.h"
#include "ops/random/random.h"

namespace torch_webgpu {
namespace {

constexpr int kOwnWords = PointwiseRow::own_block | PointwiseRow::has_index;
constexpr const char* kLibrary = "random_rejection";
constexpr PointwiseRow kGamma = random_row("_standard_gamma", "random_gamma(a, index, block)", kLibrary, 0, kOwnWords);
constexpr PointwiseRow kPoisson = random_row("poisson", "random_poisson(a, index, block)", kLibrary, 0, kOwnWords);
constexpr PointwiseRow kBinomial =
    random_row("binomial", "random_binomial(a, b, index, block)", kLibrary, 0, kOwnWords);
constexpr PointwiseRow kGammaGradient =
    make_row("_standard_gamma_grad", "gamma_gradient(a, b)", PointwiseRow::none, "gamma_gradient");
constexpr PointwiseRow kDirichletGradient =
    make_row("_dirichlet_grad", "dirichlet_gradient(a, b, c)", PointwiseRow::none, "gamma_gradient");

void check_floats(const at::Tensor& tensor, const char* name) {
  TORCH_CHECK_NOT_IMPLEMENTED(at::isFloatingType(tensor.scalar_type()), "\"", name, "\" not implemented for '",
                              toString(tensor.scalar_type()), "'");
}

at::Tensor sample(const PointwiseRow& row, at::TensorList parameters, const OptionalGenerator& generator) {
  at::Tensor out = at::empty_like(parameters[0], at::MemoryFormat::Contiguous);
  draw(out, row, at::kFloat, generator, {}, {}, parameters);
  return out;
}

at::Tensor standard_gamma(const at::Tensor& alpha, OptionalGenerator generator) {
  check_floats(alpha, "gamma_cpu");
  return sample(kGamma, {alpha}, generator);
}

at::Tensor poisson(const at::Tensor& rate, OptionalGenerator generator) {
  check_floats(rate, "poisson_cpu");
  return sample(kPoisson, {rate}, generator);
}

at::Tensor binomial(const at::Tensor& count, const at::Tensor& probability, OptionalGenerator generator) {
  TORCH_CHECK_VALUE(at::isFloatingType(count.scalar_type()),
                    "binomial only supports floating-point dtypes for count, got: ", count.scalar_type());
  TORCH_CHECK_VALUE(at::isFloatingType(probability.scalar_type()),
                    "binomial only supports floating-point dtypes for prob, got: ", probability.scalar_type());
  return sample(kBinomial, {count, probability}, generator);
}

at::Tensor sample_dirichlet(const at::Tensor& alpha, OptionalGenerator generator) {
  check_floats(alpha, "dirichlet");
  const at::Tensor parts = sample(kGamma, {alpha.to(at::kFloat)}, generator);
  return parts.div_(parts.sum({-1}, /*keepdim=*/true))
      .clamp_min_(std::numeric_limits<float>::min())
      .to(alpha.scalar_type());
}

at::Tensor gradient(const PointwiseRow& row, at::TensorList operands) {
  at::TensorIteratorConfig config;
  config.add_owned_output(at::Tensor());
  for (const auto& operand : operands) config.add_const_input(operand);
  auto iterator = config.build();
  elementwise(iterator, row, iterator.common_dtype());
  return iterator.output();
}

at::Tensor standard_gamma_grad(const at::Tensor& alpha, const at::Tensor& sample) {
  check_floats(alpha, "_standard_gamma_grad_cpu");
  return gradient(kGammaGradient, {alpha, sample});
}

at::Tensor dirichlet_grad(const at::Tensor& sample, const at::Tensor& alpha, const at::Tensor& total) {
  check_floats(sample, "_dirichlet_grad_cpu");
  return gradient(kDirichletGradient, {sample, alpha, total});
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  native<&standard_gamma>(library, "_standard_gamma");
  native<&standard_gamma_grad>(library, "_standard_gamma_grad");
  native<&sample_dirichlet>(library, "_sample_dirichlet");
  native<&dirichlet_grad>(library, "_dirichlet_grad");
  native<&poisson>(library, "poisson");
  native<&binomial>(library, "binomial");
}

}  // namespace
}  // namespace torch_webgpu
