// The table of pointwise ops.
#include "ops/pointwise.h"

#include <ATen/ops/add_meta.h>
#include <ATen/ops/bitwise_and_meta.h>
#include <ATen/ops/bitwise_not_meta.h>
#include <ATen/ops/bitwise_or_meta.h>
#include <ATen/ops/bitwise_xor_meta.h>
#include <ATen/ops/clamp_max_meta.h>
#include <ATen/ops/clamp_min_meta.h>
#include <ATen/ops/div_meta.h>
#include <ATen/ops/eq_meta.h>
#include <ATen/ops/erf_meta.h>
#include <ATen/ops/exp_meta.h>
#include <ATen/ops/ge_meta.h>
#include <ATen/ops/gt_meta.h>
#include <ATen/ops/le_meta.h>
#include <ATen/ops/log_meta.h>
#include <ATen/ops/lt_meta.h>
#include <ATen/ops/maximum_meta.h>
#include <ATen/ops/minimum_meta.h>
#include <ATen/ops/mul_meta.h>
#include <ATen/ops/ne_meta.h>
#include <ATen/ops/neg_meta.h>
#include <ATen/ops/rsqrt_meta.h>
#include <ATen/ops/sigmoid_meta.h>
#include <ATen/ops/sqrt_meta.h>
#include <ATen/ops/sub_meta.h>
#include <ATen/ops/tanh_meta.h>

namespace torch_webgpu {
namespace {

#define ROW(name, overload, out_overload, formula, flags)                                          \
  {                                                                                                \
    static constexpr PointwiseRow row = make_row(#name, formula, flags);                           \
    using Op = Pointwise<at::meta::structured_##name##overload, row>;                              \
    register_forms<Op>(library, #name, sizeof(#overload) > 1 ? &#overload[1] : "", #out_overload); \
  }
#define POINTWISE(name, overload, out_overload, formula) ROW(name, overload, out_overload, formula, PointwiseRow::none)
#define COMPARISON(name, overload, out_overload, formula) \
  ROW(name, overload, out_overload, formula, PointwiseRow::returns_bool)
// Not structured in PyTorch.
#define UNARY(name, formula)                                      \
  {                                                               \
    static constexpr PointwiseRow row = make_row(#name, formula); \
    register_forms<Unary<row>>(library, #name, "", "out");        \
  }

// clang-format off
TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  //          name       overload  out overload  formula
  POINTWISE(  add,       _Tensor,  out,          "add(a, mul(s0, b))")
  POINTWISE(  sub,       _Tensor,  out,          "sub(a, mul(s0, b))")
  POINTWISE(  mul,       _Tensor,  out,          "mul(a, b)")
  POINTWISE(  div,       _Tensor,  out,          "a / b")
  POINTWISE(  maximum,   ,         out,          "max(a, b)")
  POINTWISE(  minimum,   ,         out,          "min(a, b)")
  POINTWISE(  clamp_min, ,         out,          "max(a, s0)")
  POINTWISE(  clamp_min, _Tensor,  Tensor_out,   "max(a, b)")
  POINTWISE(  clamp_max, ,         out,          "min(a, s0)")
  POINTWISE(  clamp_max, _Tensor,  Tensor_out,   "min(a, b)")
  POINTWISE(  neg,       ,         out,          "neg(a)")
  POINTWISE(  exp,       ,         out,          "exp(a)")
  POINTWISE(  log,       ,         out,          "log(a)")
  POINTWISE(  sqrt,      ,         out,          "sqrt(a)")
  POINTWISE(  rsqrt,     ,         out,          "rsqrt(a)")
  POINTWISE(  sigmoid,   ,         out,          "sigmoid(a)")
  POINTWISE(  tanh,      ,         out,          "tanh(a)")
  POINTWISE(  erf,       ,         out,          "erf(a)")
  COMPARISON( eq,        _Tensor,  Tensor_out,   "eq(a, b)")
  COMPARISON( eq,        _Scalar,  Scalar_out,   "eq(a, b)")
  COMPARISON( ne,        _Tensor,  Tensor_out,   "ne(a, b)")
  COMPARISON( ne,        _Scalar,  Scalar_out,   "ne(a, b)")
  COMPARISON( lt,        _Tensor,  Tensor_out,   "lt(a, b)")
  COMPARISON( lt,        _Scalar,  Scalar_out,   "lt(a, b)")
  COMPARISON( le,        _Tensor,  Tensor_out,   "le(a, b)")
  COMPARISON( le,        _Scalar,  Scalar_out,   "le(a, b)")
  COMPARISON( gt,        _Tensor,  Tensor_out,   "gt(a, b)")
  COMPARISON( gt,        _Scalar,  Scalar_out,   "gt(a, b)")
  COMPARISON( ge,        _Tensor,  Tensor_out,   "ge(a, b)")
  COMPARISON( ge,        _Scalar,  Scalar_out,   "ge(a, b)")
  POINTWISE(  bitwise_and, _Tensor,Tensor_out,   "bit_and(a, b)")
  POINTWISE(  bitwise_or,  _Tensor,Tensor_out,   "bit_or(a, b)")
  POINTWISE(  bitwise_xor, _Tensor,Tensor_out,   "bit_xor(a, b)")
  POINTWISE(  bitwise_not, ,       out,          "bit_not(a)")
  UNARY(      abs,                               "abs(a)")
  UNARY(      relu,                              "max(a, zero)")
}
// clang-format on

}  // namespace
}  // namespace torch_webgpu
