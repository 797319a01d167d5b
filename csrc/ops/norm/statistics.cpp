#include "ops/norm/statistics.h"

#include <ATen/TensorIterator.h>
#include <ATen/native/ReduceOpsUtils.h>
#include <ATen/ops/sum.h>

#include "families/reduce.h"
#include "families/reduce_rows.h"
#include "ops/pointwise/table.h"

namespace torch_webgpu {
namespace {

// By what is left out: formulas for the operands that are there, in their order.
constexpr PointwiseRow kNormalize[] = {make_row("normalize", "(a - b) * c"),               // neither weight nor bias
                                       make_row("normalize", "(a - b) * c * d"),           // a weight
                                       make_row("normalize", "(a - b) * c + d"),           // a bias
                                       make_row("normalize", "fma((a - b) * c, d, e)")};   // both
constexpr PointwiseRow kDistance[] = {make_row("normalize_backward", "a * b"),             // neither mean nor scale
                                      make_row("normalize_backward", "a * (b - c)"),       // a mean
                                      make_row("normalize_backward", "a * b * c"),         // a scale
                                      make_row("normalize_backward", "a * (b - c) * d")};  // both
constexpr PointwiseRow kGradient[] = {
    make_row("normalize_backward", "(a - e * s0 - (b - c) * (d * d * f * s0)) * d"),  // no weight
    make_row("normalize_backward", "(a * g - e * s0 - (b - c) * (d * d * f * s0)) * d")};

// clang-format off
//                           name    fields         finish
constexpr ReduceRow kMoment {"norm", "fff", SPREAD, "p.y",                                           ReduceRow::value, "p.x", ReduceRow::value, "statistics"};
constexpr ReduceRow kScale  {"norm", "fff", SPREAD, "1.0 / sqrt(p.y / f32(count) + scalar())",       ReduceRow::value, "p.x", ReduceRow::value, "statistics"};
// clang-format on

// Operands of any dtypes, computed in float32, without those that are undefined.
at::TensorIterator iterator_of(const at::Tensor& out, std::initializer_list<at::Tensor> inputs) {
  at::TensorIteratorConfig config;
  config.check_all_same_dtype(false).resize_outputs(false).set_check_mem_overlap(false).add_owned_output(out);
  for (const at::Tensor& input : inputs) {
    if (input.defined()) config.add_owned_const_input(input);
  }
  return config.build();
}

size_t which(const at::Tensor& first, const at::Tensor& second = {}) {
  return (first.defined() ? 1 : 0) + (second.defined() ? 2 : 0);
}

}  // namespace

void normalize(const at::Tensor& out, const at::Tensor& x, const at::Tensor& mean, const at::Tensor& scale,
               const at::Tensor& weight, const at::Tensor& bias) {
  auto iterator = iterator_of(out, {x, mean, scale, weight, bias});
  elementwise(iterator, kNormalize[which(weight, bias)], at::kFloat);
}

void normalize_backward(const at::Tensor& out, const at::Tensor& grad, const at::Tensor& x, const at::Tensor& mean,
                        const at::Tensor& scale, const at::Tensor& weight, const at::Tensor& total,
                        const at::Tensor& moment, int64_t n) {
  auto iterator = iterator_of(out, {grad, x, mean, scale, total, moment, weight});
  const at::Scalar part(1.0 / static_cast<double>(n));
  elementwise(iterator, kGradient[which(weight)], at::kFloat, {&part});
}

Spread spread_of(const at::Tensor& x, at::IntArrayRef dims, std::optional<double> epsilon) {
  const auto shape = at::meta::get_reduction_shape(x, dims, true);
  Spread result{empty_tensor(shape, {}, at::kFloat), empty_tensor(shape, {}, at::kFloat)};
  reduce(epsilon ? kScale : kMoment, x, dims, true, result.moment, at::kFloat, result.mean, epsilon.value_or(0));
  return result;
}

at::Tensor distance_sums(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& mean, const at::Tensor& scale,
                         at::IntArrayRef dims) {
  const at::IntArrayRef strides = x.is_non_overlapping_and_dense() ? x.strides() : at::IntArrayRef();
  const at::Tensor products = empty_tensor(x.sizes(), strides, at::kFloat);
  auto iterator = iterator_of(products, {grad, x, mean, scale});
  elementwise(iterator, kDistance[which(mean, scale)], at::kFloat);
  return at::sum(products, dims, true);
}

}  // namespace torch_webgpu
