// Means and variances over any dimensions, and the pointwise formulas that apply them: shared by the normalisations
// that do not go by rows.
#pragma once
#include <ATen/core/Tensor.h>

#include <optional>

namespace torch_webgpu {

// out = (x - mean) * scale * weight + bias, of tensors that broadcast to x; weight and bias may be undefined.
void normalize(const at::Tensor& out, const at::Tensor& x, const at::Tensor& mean, const at::Tensor& scale,
               const at::Tensor& weight, const at::Tensor& bias);

// The gradient of x: (grad * weight - total / n - (x - mean) * scale^2 * moment / n) * scale, where total and moment
// are the sums over the n elements of a set of grad * weight, and of that times the distance from the mean.
void normalize_backward(const at::Tensor& out, const at::Tensor& grad, const at::Tensor& x, const at::Tensor& mean,
                        const at::Tensor& scale, const at::Tensor& weight, const at::Tensor& total,
                        const at::Tensor& moment, int64_t n);

// The mean and the sum of squared distances from it, or with an epsilon one over the standard deviation, over `dims`,
// as float32 with ones in their place.
struct Spread {
  at::Tensor mean, moment;
};
Spread spread_of(const at::Tensor& x, at::IntArrayRef dims, std::optional<double> epsilon = std::nullopt);

// The sum over `dims` of grad * (x - mean) * scale, as float32 with ones in their place; without a mean or a scale
// there is none.
at::Tensor distance_sums(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& mean, const at::Tensor& scale,
                         at::IntArrayRef dims);

}  // namespace torch_webgpu
