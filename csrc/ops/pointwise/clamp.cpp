// clamp with bounds that may be missing: one row for both bounds, the rows of clamp_min and clamp_max for one.
#include <ATen/ops/clamp_meta.h>

#include "ops/pointwise/table.h"

namespace torch_webgpu {
namespace {

using ScalarMeta = at::meta::structured_clamp;
using TensorMeta = at::meta::structured_clamp_Tensor;
using OptionalScalar = std::optional<at::Scalar>;
using OptionalTensor = std::optional<at::Tensor>;

constexpr PointwiseRow kScalars = make_row("clamp", "min(max(a, s0), s1)", kNoBool | PointwiseRow::narrow_scalars);
constexpr PointwiseRow kScalarMin = make_row("clamp_min", "max(a, s0)", kNoBool | PointwiseRow::narrow_scalars);
constexpr PointwiseRow kScalarMax = make_row("clamp_max", "min(a, s0)", kNoBool | PointwiseRow::narrow_scalars);
constexpr PointwiseRow kTensors = make_row("clamp", "min(max(a, b), c)", kNoBool);
constexpr PointwiseRow kTensorMin = make_row("clamp", "max(a, b)");
constexpr PointwiseRow kTensorMax = make_row("clamp", "min(a, b)");

struct ScalarClamp {
  static void run(Structured<ScalarMeta>& op, const at::Tensor& self, const OptionalScalar& min,
                  const OptionalScalar& max) {
    const auto reference = [](const OptionalScalar& bound) {
      return bound ? at::OptionalScalarRef(*bound) : at::OptionalScalarRef();
    };
    op.meta(self, reference(min), reference(max));
    const PointwiseRow& row = min && max ? kScalars : min ? kScalarMin : kScalarMax;
    const auto bound = [&](const OptionalScalar& given) { return taken(row, op.common_dtype(), given.value_or(0)); };
    const at::Scalar low = bound(min), high = bound(max);
    if (min && max) return elementwise(op, row, op.common_dtype(), {&low, &high});
    elementwise(op, row, op.common_dtype(), {min ? &low : &high});
  }
};

struct TensorClamp {
  static void run(Structured<TensorMeta>& op, const at::Tensor& self, const OptionalTensor& min,
                  const OptionalTensor& max) {
    const auto reference = [](const OptionalTensor& bound) {
      return bound && bound->defined() ? at::OptionalTensorRef(*bound) : at::OptionalTensorRef();
    };
    const auto low = reference(min), high = reference(max);
    op.meta(self, low, high);
    const PointwiseRow& row = low.has_value() && high.has_value() ? kTensors
                              : low.has_value()                   ? kTensorMin
                                                                  : kTensorMax;
    elementwise(op, row, op.common_dtype());
  }
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  register_forms<Forms<ScalarClamp>>(library, "clamp", "", "out");
  register_forms<Forms<TensorClamp>>(library, "clamp", "Tensor", "Tensor_out");
}

}  // namespace
}  // namespace torch_webgpu
