// What normalisations share: the one launcher of row-wise kernels, and the formulas for statistics that are broadcast.
#pragma once
#include <ATen/core/Tensor.h>

#include <optional>

#include "shader/norm.h"

namespace torch_webgpu {

// Contiguous operands of the kernels in shader/norm.h; what stays undefined is left out.
struct NormRows {
  const char* name;  // what an error says
  int64_t rows, length;
  at::Tensor out{}, x{}, grad{}, weight{}, bias{}, mean{}, scale{}, total{}, moment{};
  double epsilon = 0;
  bool root_mean_square = false;
  // Rows in a row with one mean, and means until they begin again: 0 is all of them.
  int64_t share = 1, period = 0;
};
void norm_rows(NormKind kind, const NormRows& norm);

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
