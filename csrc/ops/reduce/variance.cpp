// Spread: std, var and their pairs with the mean, by joining means and sums of squared distances (Welford, Chan).
#include <ATen/native/ReduceOpsUtils.h>
#include <torch/library.h>

#include "families/reduce.h"
#include "families/reduce_rows.h"
#include "families/tensor.h"
#include "ops/native.h"

namespace torch_webgpu {
namespace {

using DimList = at::OptionalIntArrayRef;
using Correction = std::optional<at::Scalar>;

// clang-format off
//                            name        fields         finish
constexpr ReduceRow kVar     {"var",      "fff", SPREAD, "variance(p.y, count, scalar())",       ReduceRow::value, nullptr,                             ReduceRow::value, "statistics"};
constexpr ReduceRow kStd     {"std",      "fff", SPREAD, "sqrt(variance(p.y, count, scalar()))", ReduceRow::value, nullptr,                             ReduceRow::value, "statistics"};
constexpr ReduceRow kVarMean {"var_mean", "fff", SPREAD, "variance(p.y, count, scalar())",       ReduceRow::value, "select(p.x, nan(), count == 0u)",   ReduceRow::value, "statistics"};
constexpr ReduceRow kStdMean {"std_mean", "fff", SPREAD, "sqrt(variance(p.y, count, scalar()))", ReduceRow::value, "select(p.x, nan(), count == 0u)",   ReduceRow::value, "statistics"};
// clang-format on

void spread(const ReduceRow& row, const at::Tensor& self, DimList dims, const Correction& correction, bool keepdim,
            const at::Tensor& result, const at::Tensor& mean = {}) {
  TORCH_CHECK(at::isFloatingType(self.scalar_type()) || at::isComplexType(self.scalar_type()),
              row.second ? row.name : "std and var", " only support floating point and complex dtypes");
  TORCH_CHECK(at::canCast(self.scalar_type(), result.scalar_type()), "result type ", self.scalar_type(),
              " can't be cast to the desired output type ", result.scalar_type());
  const auto shape = at::meta::get_reduction_shape(self, dims.value_or(at::IntArrayRef()), keepdim);
  at::native::resize_output(result, shape);
  if (mean.defined()) at::native::resize_output(mean, shape);
  const double less = correction.value_or(1).toDouble();
  const int64_t count = result.numel() == 0 ? 0 : self.numel() / result.numel();
  if (static_cast<double>(count) - less <= 0) {
    TORCH_WARN(row.name,
               "(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor (input "
               "numel divided by output numel).");
  }
  reduce(row, self, dims, keepdim, result, at::kFloat, mean, less);
}

template <const ReduceRow& Row>
struct Spread {
  static at::Tensor functional(const at::Tensor& self, DimList dims, const Correction& correction, bool keepdim) {
    at::Tensor result = at::empty({0}, self.options());
    spread(Row, self, dims, correction, keepdim, result);
    return result;
  }
  static at::Tensor& out(const at::Tensor& self, DimList dims, const Correction& correction, bool keepdim,
                         at::Tensor& out) {
    spread(Row, self, dims, correction, keepdim, out);
    return out;
  }
  static std::tuple<at::Tensor, at::Tensor> pair(const at::Tensor& self, DimList dims, const Correction& correction,
                                                 bool keepdim) {
    at::Tensor result = at::empty({0}, self.options()), mean = at::empty({0}, self.options());
    spread(Row, self, dims, correction, keepdim, result, mean);
    return {result, mean};
  }
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  native<&Spread<kVar>::functional>(library, "var.correction");
  native<&Spread<kVar>::out>(library, "var.correction_out");
  native<&Spread<kStd>::functional>(library, "std.correction");
  native<&Spread<kStd>::out>(library, "std.correction_out");
  native<&Spread<kVarMean>::pair>(library, "var_mean.correction");
  native<&Spread<kStdMean>::pair>(library, "std_mean.correction");
}

}  // namespace
}  // namespace torch_webgpu
