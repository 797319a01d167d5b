// Arithmetic whose rules PyTorch's own implementations carry, over kernels of ours: powers, rounding, shifts, logic.
#include <ATen/ScalarOps.h>
#include <ATen/native/BinaryOps.h>
#include <ATen/native/Pow.h>
#include <ATen/native/UnaryOps.h>
#include <ATen/ops/angle_native.h>
#include <ATen/ops/conj_physical_native.h>
#include <ATen/ops/div_meta.h>
#include <ATen/ops/floor_divide_native.h>
#include <ATen/ops/gcd_meta.h>
#include <ATen/ops/isnan_native.h>
#include <ATen/ops/lcm_meta.h>
#include <ATen/ops/logical_and_native.h>
#include <ATen/ops/logical_not_native.h>
#include <ATen/ops/logical_or_native.h>
#include <ATen/ops/logical_xor_native.h>
#include <ATen/ops/lshift_native.h>
#include <ATen/ops/nan_to_num_native.h>
#include <ATen/ops/nextafter_native.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/pow_meta.h>
#include <ATen/ops/pow_native.h>
#include <ATen/ops/remainder_native.h>
#include <ATen/ops/round_native.h>
#include <ATen/ops/rshift_native.h>
#include <ATen/ops/rsub_native.h>

#include <cmath>
#include <limits>

#include "ops/pointwise/power.h"
#include "ops/pointwise/table.h"

namespace torch_webgpu {
namespace {

// Powers of floats that are cheaper and more exact by other means, as on the CPU; integers by squaring.
constexpr PointwiseRow kPow = make_row("pow", "pow(a, b)", kNoBool, "transcendental");
constexpr PointwiseRow kPower = make_row("pow", "pow(a, s0)", kNoBool, "transcendental");
constexpr PointwiseRow kSquare = make_row("pow", "mul(a, a)", kNoBool);
constexpr PointwiseRow kCube = make_row("pow", "mul(mul(a, a), a)", kNoBool);
constexpr PointwiseRow kSquareInverse = make_row("pow", "1.0 / (a * a)");
constexpr PointwiseRow kRoot = make_row("pow", "sqrt(a)");
constexpr PointwiseRow kRootInverse = make_row("pow", "rsqrt(a)");

}  // namespace

Power power_of(at::ScalarType dtype, const at::Scalar& given) {
  // The exponent is a number of the dtype, as on the CPU, which lets that of a float32 become infinite.
  const at::Scalar exponent = dtype == at::kFloat ? given : fitted(dtype, given);
  const bool floating = at::isFloatingType(dtype);
  const auto is = [&](double value) { return !exponent.isComplex() && exponent.equal(value); };
  const PointwiseRow& row = is(2)                 ? kSquare
                            : is(3)               ? kCube
                            : floating && is(-2)  ? kSquareInverse
                            : floating && is(.5)  ? kRoot
                            : floating && is(-.5) ? kRootInverse
                                                  : kPower;
  return {row, exponent};
}

namespace {

void pow_scalar(at::TensorIteratorBase& iterator, const at::Scalar& given) {
  const Power power = power_of(iterator.common_dtype(), given);
  elementwise(iterator, power.row, iterator.common_dtype(), {&power.exponent});
}

constexpr PointwiseRow kDivTrue = make_row("div", "a / b");
constexpr PointwiseRow kDivTrunc = make_row("div", "div_trunc(a, b)", kNoBool);
constexpr PointwiseRow kDivFloor = make_row("div", "div_floor(a, b)", kNoBool);

// The quotient is rounded to the dtype before it is cut, as on the CPU.
constexpr PointwiseRow kDivTruncHalf = make_row("div", "trunc(load_f16(store_f16(a / b)))");
constexpr PointwiseRow kDivTruncBFloat16 = make_row("div", "trunc(load_bf16(store_bf16(a / b)))");

struct Divide {
  template <class Op>
  static void run(Op& op, const at::Tensor&, const at::Tensor&, std::optional<c10::string_view> mode) {
    const at::ScalarType dtype = op.common_dtype();
    const PointwiseRow& trunc = dtype == at::kHalf       ? kDivTruncHalf
                                : dtype == at::kBFloat16 ? kDivTruncBFloat16
                                                         : kDivTrunc;
    elementwise(op, !mode ? kDivTrue : *mode == "trunc" ? trunc : kDivFloor, dtype);
  }
};

// The magnitude of the smallest integer is itself in every integer dtype; the signs that follow from it are the CPU's.
constexpr uint16_t kCounts = kIntegers | kNoBool;
#define GCD_ROWS(name, before, after)                                                                     \
  {make_row(name, before "gcd(abs(a), abs(b))" after, kCounts),                                           \
   make_row(name, before "gcd(load_i16(store_i16(abs(a))), load_i16(store_i16(abs(b))))" after, kCounts), \
   make_row(name, before "gcd(load_i8(store_i8(abs(a))), load_i8(store_i8(abs(b))))" after, kCounts)}
constexpr PointwiseRow kGcd[] = GCD_ROWS("gcd", "", ""), kLcm[] = GCD_ROWS("lcm", "lcm(a, b, ", ")");

template <const auto& Rows>
struct CommonFactor {
  template <class Op>
  static void run(Op& op, const at::Tensor&, const at::Tensor&) {
    const at::ScalarType dtype = op.common_dtype();
    elementwise(op, Rows[dtype == at::kShort ? 1 : dtype == at::kChar ? 2 : 0], dtype);
  }
};

// PyTorch's own makes a float64 tensor of the base, on the device; here it stays a number of the host's.
struct PowerOfNumber {
  template <class Op>
  static void run(Op& op, const at::Scalar& base, const at::Tensor& exponent) {
    at::pow_out(op.outputs[0], at::native::wrapped_scalar_tensor(base), exponent);
  }
};

constexpr PointwiseRow kLdexp = make_row("ldexp", "ldexp_by(a, b)", kFloats, "transcendental");

at::Tensor& scale_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  auto iterator = at::TensorIterator::binary_float_op(out, self, other);
  elementwise(iterator, kLdexp, iterator.common_dtype());
  return out;
}
at::Tensor scale(const at::Tensor& self, const at::Tensor& other) {
  at::Tensor out;
  auto iterator = at::TensorIterator::binary_float_op(out, self, other);
  elementwise(iterator, kLdexp, iterator.common_dtype());
  return iterator.output();
}
at::Tensor& scale_(at::Tensor& self, const at::Tensor& other) { return scale_out(self, other, self); }

// Rounds to a power of ten, left or right of the decimal point.
constexpr PointwiseRow kRoundDecimals = make_row("round", "round(a * s0) / s0", kFloats);
constexpr PointwiseRow kRoundTens = make_row("round", "round(a / s0) * s0", kFloats);

void round_decimals(at::TensorIteratorBase& iterator, int64_t decimals) {
  const at::Scalar tens(std::pow(10.0, static_cast<double>(std::abs(decimals))));
  elementwise(iterator, decimals < 0 ? kRoundTens : kRoundDecimals, iterator.common_dtype(), {&tens});
}

constexpr PointwiseRow kNanToNum = make_row(
    "nan_to_num", "select(select(select(a, s2, is_neginf(a)), s1, is_posinf(a)), s0, is_nan(a))", PointwiseRow::none);

void nan_to_num(at::TensorIteratorBase& iterator, std::optional<double> nan, std::optional<double> posinf,
                std::optional<double> neginf) {
  const at::ScalarType dtype = iterator.common_dtype();
  const float largest = dtype == at::kHalf       ? float{std::numeric_limits<c10::Half>::max()}
                        : dtype == at::kBFloat16 ? float{std::numeric_limits<c10::BFloat16>::max()}
                                                 : std::numeric_limits<float>::max();
  const at::Scalar s0(nan.value_or(0)), s1(posinf.value_or(largest)), s2(neginf.value_or(-largest));
  elementwise(iterator, kNanToNum, dtype, {&s0, &s1, &s2});
}

// A step in the grid of the dtype.
constexpr PointwiseRow kNextFloat = make_row("nextafter", "nextafter(a, b, 1u)", kFloats, "transcendental");
constexpr PointwiseRow kNextBFloat16 = make_row("nextafter", "nextafter(a, b, 0x10000u)", kFloats, "transcendental");

constexpr PointwiseRow kNextHalf = make_row("nextafter", "nextafter_half(a, b)", kFloats, "transcendental");

void nextafter(at::TensorIteratorBase& iterator) {
  const at::ScalarType dtype = iterator.common_dtype();
  const PointwiseRow& row = dtype == at::kHalf ? kNextHalf : dtype == at::kBFloat16 ? kNextBFloat16 : kNextFloat;
  elementwise(iterator, row, dtype);
}

#define LOGICAL(name, formula)                                                  \
  {                                                                             \
    static constexpr PointwiseRow row = make_row(#name, formula);               \
    using Kernel = Stub<row, decltype(at::native::name##_stub)::FnPtr>;         \
    at::native::name##_stub.set_privateuse1_dispatch_ptr(&Kernel::run_as_bool); \
    native<&at::native::name##_out>(library, #name ".out");                     \
  }

// One of a native function's overloads.
template <class Signature>
constexpr Signature* overload(Signature* function) {
  return function;
}

// clang-format off
TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  {
    using Op = Pointwise<at::meta::structured_pow_Tensor_Tensor, kPow>;
    register_forms<Op>(library, "pow", "Tensor_Tensor", "Tensor_Tensor_out");
    native<&Op::inplace>(library, "pow_.Tensor");
  }
  register_forms<FormsOf<at::meta::structured_div_Tensor_mode, Divide>>(library, "div", "Tensor_mode", "out_mode");
  list_formula("gcd", kGcd[0]);
  list_formula("lcm", kLcm[0]);
  register_forms<FormsOf<at::meta::structured_gcd, CommonFactor<kGcd>>>(library, "gcd", "", "out");
  register_forms<FormsOf<at::meta::structured_lcm, CommonFactor<kLcm>>>(library, "lcm", "", "out");
  NATIVE(     pow,       _Tensor_Scalar, Tensor_Scalar_out, pow_Tensor_Scalar_out)
  NATIVE(     round,     _decimals, decimals_out, round_decimals_out)
  NATIVE(     nextafter, ,         out,          nextafter_out)
  STUB(       div_floor_stub,    "div_floor(a, b)", kNoBool, nullptr)
  STUB(       lshift_stub,       "shl(a, b)", kIntegers | kNoBool, nullptr)
  STUB(       rshift_stub,       "shr(a, b)", kIntegers | kNoBool, nullptr)
  STUB(       round_stub,        "round(a)", kNoBool, nullptr)
  STUB(       angle_stub,        "select(select(0.0, 3.14159265, a < 0.0), a, is_nan(a))", kFloats, nullptr)
  STUB(       conj_physical_stub, "a", PointwiseRow::none, nullptr)
  LOGICAL(    logical_and,       "a && b")
  LOGICAL(    logical_or,        "a || b")
  LOGICAL(    logical_xor,       "a != b")
  LOGICAL(    logical_not,       "!a")
  at::native::pow_tensor_scalar_stub.set_privateuse1_dispatch_ptr(&pow_scalar);
  at::native::round_decimals_stub.set_privateuse1_dispatch_ptr(&round_decimals);
  at::native::nan_to_num_stub.set_privateuse1_dispatch_ptr(&nan_to_num);
  at::native::nextafter_stub.set_privateuse1_dispatch_ptr(&nextafter);
  native<&at::native::nan_to_num_out>(library, "nan_to_num.out");
  native<&at::native::angle>(library, "angle");
  native<&at::native::angle_out>(library, "angle.out");
  native<&at::native::conj_physical_out>(library, "conj_physical.out");
  native<&at::native::isnan, kStored>(library, "isnan");

  native<&FormsOf<at::meta::structured_pow_Scalar, PowerOfNumber>::functional>(library, "pow.Scalar");
  native<&FormsOf<at::meta::structured_pow_Scalar, PowerOfNumber>::out>(library, "pow.Scalar_out");
  native<&FormsOf<at::native::structured_pow_Tensor_Scalar_out, Native>::inplace>(library, "pow_.Scalar");
  native<&scale>(library, "ldexp.Tensor");
  native<&scale_>(library, "ldexp_");
  native<&scale_out>(library, "ldexp.out");

  using Tensor = at::Tensor;
  using Scalar = at::Scalar;
  using Unwritten = const Tensor&;
  library.impl("floor_divide", overload<Tensor(Unwritten, Unwritten)>(&at::native::floor_divide));
  library.impl("floor_divide_.Tensor", overload<Tensor&(Tensor&, Unwritten)>(&at::native::floor_divide_));
  native<&at::native::floor_divide_out>(library, "floor_divide.out");
  library.impl("rsub.Tensor", overload<Tensor(Unwritten, Unwritten, const Scalar&)>(&at::native::rsub));
  library.impl("remainder.Scalar_Tensor", overload<Tensor(const Scalar&, Unwritten)>(&at::native::remainder));
  library.impl("__lshift__.Tensor", overload<Tensor(Unwritten, Unwritten)>(&at::native::__lshift__));
  library.impl("__lshift__.Scalar", overload<Tensor(Unwritten, const Scalar&)>(&at::native::__lshift__));
  library.impl("__ilshift__.Tensor", overload<Tensor&(Tensor&, Unwritten)>(&at::native::__ilshift__));
  library.impl("__ilshift__.Scalar", overload<Tensor&(Tensor&, const Scalar&)>(&at::native::__ilshift__));
  library.impl("__rshift__.Tensor", overload<Tensor(Unwritten, Unwritten)>(&at::native::__rshift__));
  library.impl("__rshift__.Scalar", overload<Tensor(Unwritten, const Scalar&)>(&at::native::__rshift__));
  library.impl("__irshift__.Tensor", overload<Tensor&(Tensor&, Unwritten)>(&at::native::__irshift__));
  library.impl("__irshift__.Scalar", overload<Tensor&(Tensor&, const Scalar&)>(&at::native::__irshift__));
}
// clang-format on

}  // namespace

}  // namespace torch_webgpu
