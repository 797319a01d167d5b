// The table of transcendental functions, which compute in f32 whatever the dtype.
#include <ATen/ops/acos_meta.h>
#include <ATen/ops/acosh_meta.h>
#include <ATen/ops/asin_meta.h>
#include <ATen/ops/asinh_meta.h>
#include <ATen/ops/atan2_meta.h>
#include <ATen/ops/atan_meta.h>
#include <ATen/ops/atanh_meta.h>
#include <ATen/ops/cos_meta.h>
#include <ATen/ops/cosh_meta.h>
#include <ATen/ops/erf_meta.h>
#include <ATen/ops/erfc_meta.h>
#include <ATen/ops/erfinv_meta.h>
#include <ATen/ops/exp2_meta.h>
#include <ATen/ops/exp_meta.h>
#include <ATen/ops/expm1_meta.h>
#include <ATen/ops/frexp_native.h>
#include <ATen/ops/hypot_meta.h>
#include <ATen/ops/log10_meta.h>
#include <ATen/ops/log1p_meta.h>
#include <ATen/ops/log2_meta.h>
#include <ATen/ops/log_meta.h>
#include <ATen/ops/logaddexp2_meta.h>
#include <ATen/ops/logaddexp_meta.h>
#include <ATen/ops/sin_meta.h>
#include <ATen/ops/sinc_meta.h>
#include <ATen/ops/sinh_meta.h>
#include <ATen/ops/tan_meta.h>
#include <ATen/ops/tanh_meta.h>
#include <ATen/ops/xlogy_meta.h>

#include "ops/pointwise/table.h"

namespace torch_webgpu {
namespace {

#define FUNCTION(name, overload, out_overload, formula) \
  ROW(name, overload, out_overload, formula, kFloats, "transcendental")

constexpr PointwiseRow kMantissa = make_row("frexp", "mantissa(a)", kFloats, "transcendental");
constexpr PointwiseRow kExponent = make_row("frexp", "exponent(a)", kFloats, "transcendental");

std::tuple<at::Tensor&, at::Tensor&> frexp_out(const at::Tensor& self, at::Tensor& mantissa, at::Tensor& exponent) {
  TORCH_CHECK(at::isFloatingType(self.scalar_type()), "torch.frexp() only supports floating-point dtypes");
  TORCH_CHECK(mantissa.dtype() == self.dtype(), "torch.frexp() expects mantissa to have dtype ", self.dtype(),
              " but got ", mantissa.dtype());
  TORCH_CHECK(exponent.dtype() == at::kInt, "torch.frexp() expects exponent to have int dtype but got ",
              exponent.dtype());
  const at::Tensor input = mantissa.is_same(self) ? self.clone() : self;
  const auto write = [&](at::Tensor& output, const PointwiseRow& row) {
    auto iterator = at::TensorIteratorConfig()
                        .check_all_same_dtype(false)
                        .add_output(output)
                        .add_const_input(input)
                        .set_check_mem_overlap(true)
                        .build();
    elementwise(iterator, row, self.scalar_type());
  };
  write(mantissa, kMantissa);
  write(exponent, kExponent);
  return std::forward_as_tuple(mantissa, exponent);
}

// clang-format off
TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  //         name        overload  out overload  formula
  POINTWISE( exp,        ,         out,          "exp(a)")
  POINTWISE( log,        ,         out,          "log(a)")
  POINTWISE( tanh,       ,         out,          "tanh(a)")
  POINTWISE( erf,        ,         out,          "erf(a)")
  POINTWISE( expm1,      ,         out,          "expm1(a)")
  POINTWISE( log1p,      ,         out,          "log1p(a)")
  FUNCTION(  exp2,       ,         out,          "exp2(a)")
  FUNCTION(  log2,       ,         out,          "log2(a)")
  FUNCTION(  log10,      ,         out,          "log10(a)")
  FUNCTION(  sin,        ,         out,          "sin(a)")
  FUNCTION(  cos,        ,         out,          "cos(a)")
  FUNCTION(  tan,        ,         out,          "tan(a)")
  FUNCTION(  sinc,       ,         out,          "sinc(a)")
  FUNCTION(  asin,       ,         out,          "asin(a)")
  FUNCTION(  acos,       ,         out,          "acos(a)")
  FUNCTION(  atan,       ,         out,          "atan(a)")
  FUNCTION(  sinh,       ,         out,          "sinh(a)")
  FUNCTION(  cosh,       ,         out,          "cosh(a)")
  FUNCTION(  asinh,      ,         out,          "asinh(a)")
  FUNCTION(  acosh,      ,         out,          "acosh(a)")
  FUNCTION(  atanh,      ,         out,          "atanh(a)")
  FUNCTION(  atan2,      ,         out,          "atan2(a, b)")
  FUNCTION(  hypot,      ,         out,          "hypot(a, b)")
  FUNCTION(  erfc,       ,         out,          "erfc(a)")
  FUNCTION(  erfinv,     ,         out,          "erfinv(a)")
  FUNCTION(  logaddexp,  ,         out,          "logaddexp(a, b)")
  FUNCTION(  logaddexp2, ,         out,          "logaddexp2(a, b)")
  FUNCTION(  xlogy,      _Tensor,  OutTensor,    "xlogy(a, b)")
  native<&frexp_out>(library, "frexp.Tensor_out");
}
// clang-format on

}  // namespace
}  // namespace torch_webgpu
