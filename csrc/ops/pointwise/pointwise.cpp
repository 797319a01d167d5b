// The table of pointwise ops: arithmetic, comparisons, bits, rounding.
#include <ATen/ops/add_meta.h>
#include <ATen/ops/addcdiv_meta.h>
#include <ATen/ops/addcmul_meta.h>
#include <ATen/ops/bitwise_and_meta.h>
#include <ATen/ops/bitwise_left_shift_meta.h>
#include <ATen/ops/bitwise_not_meta.h>
#include <ATen/ops/bitwise_or_meta.h>
#include <ATen/ops/bitwise_right_shift_meta.h>
#include <ATen/ops/bitwise_xor_meta.h>
#include <ATen/ops/ceil_meta.h>
#include <ATen/ops/clamp_max_meta.h>
#include <ATen/ops/clamp_min_meta.h>
#include <ATen/ops/copysign_meta.h>
#include <ATen/ops/div_meta.h>
#include <ATen/ops/eq_meta.h>
#include <ATen/ops/floor_meta.h>
#include <ATen/ops/fmax_meta.h>
#include <ATen/ops/fmin_meta.h>
#include <ATen/ops/fmod_meta.h>
#include <ATen/ops/frac_meta.h>
#include <ATen/ops/ge_meta.h>
#include <ATen/ops/gt_meta.h>
#include <ATen/ops/heaviside_meta.h>
#include <ATen/ops/isneginf_meta.h>
#include <ATen/ops/isposinf_meta.h>
#include <ATen/ops/le_meta.h>
#include <ATen/ops/lerp_meta.h>
#include <ATen/ops/lt_meta.h>
#include <ATen/ops/maximum_meta.h>
#include <ATen/ops/minimum_meta.h>
#include <ATen/ops/mul_meta.h>
#include <ATen/ops/ne_meta.h>
#include <ATen/ops/neg_meta.h>
#include <ATen/ops/reciprocal_meta.h>
#include <ATen/ops/remainder_meta.h>
#include <ATen/ops/round_meta.h>
#include <ATen/ops/rsqrt_meta.h>
#include <ATen/ops/sgn_meta.h>
#include <ATen/ops/sign_meta.h>
#include <ATen/ops/signbit_meta.h>
#include <ATen/ops/sqrt_meta.h>
#include <ATen/ops/sub_meta.h>
#include <ATen/ops/trunc_meta.h>

#include "ops/pointwise/table.h"

namespace torch_webgpu {
namespace {

// clang-format off
TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  //          name       overload  out overload  formula
  ROW(        add,       _Tensor,  out,          "add(a, mul(s0, b))", PointwiseRow::narrow_scalars, nullptr)
  ROW(        sub,       _Tensor,  out,          "sub(a, mul(s0, b))", PointwiseRow::narrow_scalars, nullptr)
  ROW(        mul,       _Tensor,  out,          "mul(a, b)", PointwiseRow::wide_scalars, nullptr)
  ROW(        div,       _Tensor,  out,          "a / b", PointwiseRow::wide_scalars, nullptr)
  ROW(        remainder, _Tensor,  Tensor_out,   "remainder(a, b)", kNoBool, nullptr)
  ROW(        fmod,      _Tensor,  Tensor_out,   "fmod(a, b)", kNoBool, nullptr)
  POINTWISE(  reciprocal, ,        out,          "1.0 / a")
  POINTWISE(  sqrt,      ,         out,          "sqrt(a)")
  POINTWISE(  rsqrt,     ,         out,          "rsqrt(a)")
  ROW(        addcmul,   ,         out,          "add(a, mul(mul(s0, b), c))", kNoBool, nullptr)
  ROW(        addcdiv,   ,         out,          "a + s0 * b / c", kNoBool, nullptr)
  ROW(        lerp,      _Scalar,  Scalar_out,   "select(b - (b - a) * (1.0 - s0), a + s0 * (b - a), abs(s0) < 0.5)", kFloats, nullptr)
  ROW(        lerp,      _Tensor,  Tensor_out,   "select(b - (b - a) * (1.0 - c), a + c * (b - a), abs(c) < 0.5)", kFloats, nullptr)
  POINTWISE(  maximum,   ,         out,          "max(b, a)")
  POINTWISE(  minimum,   ,         out,          "min(b, a)")
  POINTWISE(  fmax,      ,         out,          "fmax(a, b)")
  POINTWISE(  fmin,      ,         out,          "fmin(a, b)")
  ROW(        clamp_min, ,         out,          "max(a, s0)", kNoBool | PointwiseRow::narrow_scalars, nullptr)
  POINTWISE(  clamp_min, _Tensor,  Tensor_out,   "max(a, b)")
  ROW(        clamp_max, ,         out,          "min(a, s0)", kNoBool | PointwiseRow::narrow_scalars, nullptr)
  POINTWISE(  clamp_max, _Tensor,  Tensor_out,   "min(a, b)")
  ROW(        neg,       ,         out,          "neg(a)", kWithSigned, nullptr)
  POINTWISE(  sign,      ,         out,          "sign(a)")
  POINTWISE(  sgn,       ,         out,          "sign(a)")
  ROW(        copysign,  _Tensor,  out,          "copysign(a, b)", kWithDouble, nullptr)
  POINTWISE(  heaviside, ,         out,          "heaviside(a, b)")
  ROW(        floor,     ,         out,          "floor(a)", kNoBool, nullptr)
  ROW(        ceil,      ,         out,          "ceil(a)", kNoBool, nullptr)
  ROW(        trunc,     ,         out,          "trunc(a)", kNoBool, nullptr)
  ROW(        round,     ,         out,          "round(a)", kNoBool, nullptr)
  ROW(        frac,      ,         out,          "a - trunc(a)", kFloats, nullptr)
  COMPARISON( eq,        _Tensor,  Tensor_out,   "eq(a, b)", kWithStored)
  COMPARISON( eq,        _Scalar,  Scalar_out,   "eq(a, b)", kWithStored)
  COMPARISON( ne,        _Tensor,  Tensor_out,   "ne(a, b)", kWithStored)
  COMPARISON( ne,        _Scalar,  Scalar_out,   "ne(a, b)", kWithStored)
  COMPARISON( lt,        _Tensor,  Tensor_out,   "lt(a, b)", kWithOrdered)
  COMPARISON( lt,        _Scalar,  Scalar_out,   "lt(a, b)", kWithOrdered)
  COMPARISON( le,        _Tensor,  Tensor_out,   "le(a, b)", kWithOrdered)
  COMPARISON( le,        _Scalar,  Scalar_out,   "le(a, b)", kWithOrdered)
  COMPARISON( gt,        _Tensor,  Tensor_out,   "gt(a, b)", kWithOrdered)
  COMPARISON( gt,        _Scalar,  Scalar_out,   "gt(a, b)", kWithOrdered)
  COMPARISON( ge,        _Tensor,  Tensor_out,   "ge(a, b)", kWithOrdered)
  COMPARISON( ge,        _Scalar,  Scalar_out,   "ge(a, b)", kWithOrdered)
  COMPARISON( signbit,   ,         out,          "signbit(a)", kWithDouble)
  COMPARISON( isposinf,  ,         out,          "is_posinf(a)", kWithDouble)
  COMPARISON( isneginf,  ,         out,          "is_neginf(a)", kWithDouble)
  ROW(        bitwise_and, _Tensor, Tensor_out,  "bit_and(a, b)", kIntegers, nullptr)
  ROW(        bitwise_or, _Tensor, Tensor_out,  "bit_or(a, b)", kIntegers, nullptr)
  ROW(        bitwise_xor, _Tensor, Tensor_out,  "bit_xor(a, b)", kIntegers, nullptr)
  ROW(        bitwise_not, ,       out,          "bit_not(a)", kIntegers, nullptr)
  ROW(        bitwise_left_shift,  _Tensor, Tensor_out, "shl(a, b)", kIntegers | kNoBool, nullptr)
  ROW(        bitwise_right_shift, _Tensor, Tensor_out, "shr(a, b)", kIntegers | kNoBool, nullptr)
  UNARY(      abs,                               "abs(a)", kNoBool | kWithDouble)
}
// clang-format on

}  // namespace
}  // namespace torch_webgpu
