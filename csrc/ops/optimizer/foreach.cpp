// The _foreach_ ops: one formula for many tensors, as many of them in a launch as the adapter binds buffers. Lists that
// are not alike (dtypes, layouts, devices) take PyTorch's own loop over the tensors.
#include <ATen/native/ForeachUtils.h>
#include <ATen/ops/_foreach_abs_native.h>
#include <ATen/ops/_foreach_add_native.h>
#include <ATen/ops/_foreach_addcdiv_native.h>
#include <ATen/ops/_foreach_addcmul_native.h>
#include <ATen/ops/_foreach_clamp_max_native.h>
#include <ATen/ops/_foreach_clamp_min_native.h>
#include <ATen/ops/_foreach_copy_native.h>
#include <ATen/ops/_foreach_div_native.h>
#include <ATen/ops/_foreach_lerp_native.h>
#include <ATen/ops/_foreach_maximum_native.h>
#include <ATen/ops/_foreach_minimum_native.h>
#include <ATen/ops/_foreach_mul_native.h>
#include <ATen/ops/_foreach_neg_native.h>
#include <ATen/ops/_foreach_norm_native.h>
#include <ATen/ops/_foreach_pow_native.h>
#include <ATen/ops/_foreach_reciprocal_native.h>
#include <ATen/ops/_foreach_rsqrt_native.h>
#include <ATen/ops/_foreach_sign_native.h>
#include <ATen/ops/_foreach_sqrt_native.h>
#include <ATen/ops/_foreach_sub_native.h>
#include <ATen/ops/_foreach_zero_native.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "families/multi_tensor.h"
#include "ops/pointwise/power.h"
#include "ops/pointwise/table.h"

namespace torch_webgpu {
namespace {

using Tensors = std::vector<at::Tensor>;
using Lists = std::initializer_list<at::TensorList>;

constexpr int64_t kNormElements = int64_t{1} << 16;  // more of a tensor than one workgroup should sum

// What an op passes beside its lists: the formula's s0, and a number in the place of an operand, which are either the
// same for all tensors or, in `own`, one of each tensor's own.
struct Numbers {
  const at::Scalar* scalar = nullptr;
  const at::Scalar* number = nullptr;
  at::ArrayRef<at::Scalar> own = {};
  uint32_t variant = 0;  // see MultiFormula
  bool kept = true;      // the results are worth gathering (see MultiTensor)
};

bool are_alike(Lists lists, at::ArrayRef<at::Scalar> scalars = {}) {
  const std::vector<at::TensorList> all(lists);
  const auto size = all.front().size();
  for (const auto& list : all) {
    if (list.size() != size || size == 0) return false;
  }
  if (!at::isFloatingType(all[0][0].scalar_type()) || all[0][0].device().type() != kDeviceType) return false;
  for (const auto& scalar : scalars) {
    if (scalar.isComplex()) return false;
  }
  for (const auto& list : all) {
    for (const auto& tensor : list) {
      if (tensor.is_conj() || tensor.is_neg() || !tensor.has_storage()) return false;
    }
  }
  return at::native::can_use_fast_route(all, {});
}

// A number as an op on a single tensor takes it.
float rounded(const PointwiseRow& row, at::ScalarType dtype, const at::Scalar& value, bool is_operand) {
  const bool wide = is_operand ? row.flags & PointwiseRow::wide_scalars : !(row.flags & PointwiseRow::narrow_scalars);
  const auto number = static_cast<float>(value.toDouble());
  if (wide || dtype == at::kFloat) return number;
  return dtype == at::kHalf ? static_cast<float>(at::Half(number)) : static_cast<float>(at::BFloat16(number));
}

uint32_t bits_of(float number) {
  uint32_t bits = 0;
  write_scalar(&bits, Compute::f32, number);
  return bits;
}

// By itself, for what a launch of many cannot bind.
void run_alone(const PointwiseRow& row, const at::Tensor& out, at::ArrayRef<at::Tensor> inputs, const Numbers& numbers,
               size_t index) {
  const at::Scalar own = numbers.own.empty() ? at::Scalar(0) : numbers.own[index];
  at::TensorIteratorConfig config;
  config.check_all_same_dtype(false).resize_outputs(false).add_output(out);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].defined()) {
      config.add_owned_const_input(inputs[i]);
    } else {
      const auto& number = numbers.variant & MultiFormula::kOwnNumber ? own : *numbers.number;
      config.add_owned_const_input(at::scalar_tensor(number, at::kDouble));
    }
  }
  auto iterator = config.build();
  if (row.scalars == 0) return elementwise(iterator, row, out.scalar_type());
  const at::Scalar scalar = numbers.variant & MultiFormula::kOwnScalar ? own : *numbers.scalar;
  elementwise(iterator, row, out.scalar_type(), {&scalar});
}

bool reads_output(const at::Tensor* operands, uint32_t count) {
  return std::any_of(operands + 1, operands + count, [&](const at::Tensor& input) {
    return input.defined() && input.storage().is_alias_of(operands[0].storage());
  });
}

// An empty list stands for the operand that is a number, a list of one tensor for a number of the device. Tensors
// without dimensions are numbers too.
void run(const PointwiseRow& row, at::TensorList outs, Lists inputs, const Numbers& numbers = {}) {
  const at::ScalarType dtype = outs[0].scalar_type();
  const auto word = [&](const at::Scalar* scalar, bool is_operand) {
    return scalar ? bits_of(rounded(row, dtype, *scalar, is_operand)) : 0;
  };
  MultiTensor launch(row, {word(numbers.scalar, false), word(numbers.number, true)}, numbers.variant);
  for (size_t i = 0; i < outs.size(); ++i) {
    if (outs[i].numel() == 0) continue;
    at::Tensor operands[4] = {outs[i]};
    uint32_t count = 1, singles = 0;
    for (const auto& list : inputs) {
      if (!list.empty()) operands[count] = list[list.size() == 1 ? 0 : i];
      if (!list.empty() && ((list.size() == 1 && outs.size() > 1) || operands[count].dim() < outs[i].dim())) {
        singles |= 1u << count;
      }
      ++count;
    }
    const bool own_number = numbers.variant & MultiFormula::kOwnNumber;
    const uint32_t own = numbers.own.empty() ? 0 : bits_of(rounded(row, dtype, numbers.own[i], own_number));
    const MultiTensor::Roles roles{.singles = singles,
                                   .written = 1,
                                   .kept = numbers.kept ? 1u : 0u,
                                   .overwritten = reads_output(operands, count) ? 0u : 1u};
    if (launch.add({operands, count}, roles, own)) continue;
    launch.flush();
    run_alone(row, outs[i], {operands + 1, count - 1}, numbers, i);
  }
  launch.flush();
}

Tensors results_like(at::TensorList tensors) {
  Tensors results;
  results.reserve(tensors.size());
  for (const auto& tensor : tensors) results.push_back(at::empty_like(tensor));
  return results;
}

// The forms of an op: Row is the formula, Slow and SlowInPlace PyTorch's own loops.
template <const PointwiseRow& Row, auto Slow, auto SlowInPlace>
struct OfOne {
  static Tensors functional(at::TensorList self) {
    if (!are_alike({self})) return Slow(self);
    Tensors outs = results_like(self);
    run(Row, outs, {self});
    return outs;
  }
  static void inplace(at::TensorList self) { are_alike({self}) ? run(Row, self, {self}) : SlowInPlace(self); }
};

template <const PointwiseRow& Row, auto Slow, auto SlowInPlace>
struct OfNumber {
  static constexpr uint32_t kVariant = 2;  // the number is b
  static Tensors functional(at::TensorList self, const at::Scalar& number) {
    if (!are_alike({self}, number)) return Slow(self, number);
    Tensors outs = results_like(self);
    run(Row, outs, {self, {}}, {.number = &number, .variant = kVariant});
    return outs;
  }
  static void inplace(at::TensorList self, const at::Scalar& number) {
    if (!are_alike({self}, number)) return SlowInPlace(self, number);
    run(Row, self, {self, {}}, {.number = &number, .variant = kVariant});
  }
};

template <const PointwiseRow& Row, auto Slow, auto SlowInPlace>
struct OfNumbers {
  static constexpr uint32_t kVariant = 2 | MultiFormula::kOwnNumber;
  static Tensors functional(at::TensorList self, at::ArrayRef<at::Scalar> numbers) {
    if (!are_alike({self}, numbers) || numbers.size() != self.size()) return Slow(self, numbers);
    Tensors outs = results_like(self);
    run(Row, outs, {self, {}}, {.own = numbers, .variant = kVariant});
    return outs;
  }
  static void inplace(at::TensorList self, at::ArrayRef<at::Scalar> numbers) {
    if (!are_alike({self}, numbers) || numbers.size() != self.size()) return SlowInPlace(self, numbers);
    run(Row, self, {self, {}}, {.own = numbers, .variant = kVariant});
  }
};

// A number for each tensor, such as its own learning rate or step.
bool are_numbers(at::TensorList self, at::TensorList numbers) {
  return self.size() == numbers.size() && std::all_of(numbers.begin(), numbers.end(), [&](const at::Tensor& number) {
           return number.dim() == 0 && number.device() == self[0].device() &&
                  number.scalar_type() == self[0].scalar_type();
         });
}

// Whether `other` can be an operand beside `self`: tensors alike, or numbers of the device.
bool suits(at::TensorList self, at::TensorList other) {
  return are_alike({self, other}) || (are_alike({self}) && are_numbers(self, other));
}

// Of two lists and, for add and sub, the factor of the second.
template <const PointwiseRow& Row, auto Slow, auto SlowInPlace, class... Factor>
struct OfLists {
  static bool fit(at::TensorList self, at::TensorList other, const Factor&... factor) {
    return suits(self, other) && !(factor.isComplex() || ...);
  }
  static Tensors functional(at::TensorList self, at::TensorList other, Factor... factor) {
    // The result of a number and a tensor is the tensor's like.
    const bool numbers_first = !self.empty() && self[0].dim() == 0 && fit(other, self, factor...);
    if (!numbers_first && !fit(self, other, factor...)) return Slow(self, other, factor...);
    Tensors outs = results_like(numbers_first ? other : self);
    run(Row, outs, {self, other}, {.scalar = address(factor...)});
    return outs;
  }
  static void inplace(at::TensorList self, at::TensorList other, Factor... factor) {
    if (!fit(self, other, factor...)) return SlowInPlace(self, other, factor...);
    run(Row, self, {self, other}, {.scalar = address(factor...)});
  }
  static const at::Scalar* address() { return nullptr; }
  static const at::Scalar* address(const at::Scalar& factor) { return &factor; }
};

// A number in a tensor of the device, or of the host.
template <const PointwiseRow& Row, auto Slow, auto SlowInPlace, class... Factor>
struct OfTensor {
  static bool is_number(at::TensorList self, const at::Tensor& other) {
    return are_alike({self}) && other.numel() == 1 && at::isFloatingType(other.scalar_type()) &&
           other.device().type() == kDeviceType && self.size() > 1 &&
           (other.dim() == 0 || other.scalar_type() == self[0].scalar_type());
  }
  static Tensors functional(at::TensorList self, const at::Tensor& other, Factor... factor) {
    if (!is_number(self, other)) return Slow(self, other, factor...);
    Tensors outs = results_like(self);
    run(Row, outs, {self, other}, {.scalar = OfLists<Row, Slow, SlowInPlace>::address(factor...)});
    return outs;
  }
  static void inplace(at::TensorList self, const at::Tensor& other, Factor... factor) {
    if (!is_number(self, other)) return SlowInPlace(self, other, factor...);
    // This is how gradients are clipped, which are new tensors in every step.
    run(Row, self, {self, other}, {.scalar = OfLists<Row, Slow, SlowInPlace>::address(factor...), .kept = false});
  }
};

template <const PointwiseRow& Row, auto Slow, auto SlowInPlace, class Value>
struct OfThree {
  static Numbers numbers(const at::Scalar& value) { return {.scalar = &value}; }
  static Numbers numbers(at::ArrayRef<at::Scalar> values) {
    return {.own = values, .variant = MultiFormula::kOwnScalar};
  }
  static bool fits(at::TensorList, const at::Scalar& value) { return !value.isComplex(); }
  static bool fits(at::TensorList self, at::ArrayRef<at::Scalar> values) { return self.size() == values.size(); }

  static bool fit(at::TensorList self, at::TensorList first, at::TensorList second, Value value) {
    return fits(self, value) && suits(self, first) && suits(self, second);
  }

  static Tensors functional(at::TensorList self, at::TensorList first, at::TensorList second, Value value) {
    if (!fit(self, first, second, value)) return Slow(self, first, second, value);
    Tensors outs = results_like(self);
    run(Row, outs, {self, first, second}, numbers(value));
    return outs;
  }
  static void inplace(at::TensorList self, at::TensorList first, at::TensorList second, Value value) {
    if (!fit(self, first, second, value)) return SlowInPlace(self, first, second, value);
    run(Row, self, {self, first, second}, numbers(value));
  }
};

template <const PointwiseRow& Row, auto Slow, auto SlowInPlace, class Value>
struct OfWeight {
  using Three = OfThree<Row, nullptr, nullptr, Value>;
  static Tensors functional(at::TensorList self, at::TensorList other, Value weight) {
    if (!are_alike({self, other}) || !Three::fits(self, weight)) return Slow(self, other, weight);
    Tensors outs = results_like(self);
    run(Row, outs, {self, other}, Three::numbers(weight));
    return outs;
  }
  static void inplace(at::TensorList self, at::TensorList other, Value weight) {
    if (!are_alike({self, other}) || !Three::fits(self, weight)) return SlowInPlace(self, other, weight);
    run(Row, self, {self, other}, Three::numbers(weight));
  }
};

template <const PointwiseRow& Row, auto Slow, auto SlowInPlace>
struct OfWeights {
  static Tensors functional(at::TensorList self, at::TensorList other, at::TensorList weights) {
    if (!are_alike({self, other, weights})) return Slow(self, other, weights);
    Tensors outs = results_like(self);
    run(Row, outs, {self, other, weights});
    return outs;
  }
  static void inplace(at::TensorList self, at::TensorList other, at::TensorList weights) {
    are_alike({self, other, weights}) ? run(Row, self, {self, other, weights}) : SlowInPlace(self, other, weights);
  }
};

// Some exponents have formulas of their own, as in pow.
Tensors power_of_lists(at::TensorList self, const at::Scalar& exponent) {
  if (!are_alike({self}, exponent)) return at::native::foreach_tensor_pow_scalar_kernel_slow(self, exponent);
  Tensors outs = results_like(self);
  const Power power = power_of(self[0].scalar_type(), exponent);
  run(power.row, outs, {self}, {.scalar = &power.exponent});
  return outs;
}

void power_of_lists_(at::TensorList self, const at::Scalar& exponent) {
  if (!are_alike({self}, exponent)) return at::native::foreach_tensor_pow_scalar_kernel_slow_(self, exponent);
  const Power power = power_of(self[0].scalar_type(), exponent);
  run(power.row, self, {self}, {.scalar = &power.exponent});
}

constexpr PointwiseRow kPowerOfNumber = make_row("pow", "pow(b, a)", PointwiseRow::none, "transcendental");

Tensors powers_of_number(const at::Scalar& base, at::TensorList exponents) {
  // PyTorch's results are contiguous, whatever the exponents are.
  const bool contiguous = std::all_of(exponents.begin(), exponents.end(),
                                      [](const at::Tensor& exponent) { return exponent.is_contiguous(); });
  if (!contiguous || !are_alike({exponents}, base))
    return at::native::foreach_scalar_pow_list_kernel_slow(base, exponents);
  Tensors outs = results_like(exponents);
  run(kPowerOfNumber, outs, {exponents, {}}, {.number = &base, .variant = 2});
  return outs;
}

constexpr PointwiseRow kZero = make_row("zero", "a");
constexpr PointwiseRow kCopy = make_row("copy", "a");

void zero_(at::TensorList self) {
  if (!are_alike({self})) return at::native::foreach_tensor_zero_slow_(self);
  const at::Scalar zero(0);
  run(kZero, self, {{}}, {.number = &zero, .variant = 1});
}

void copy_(at::TensorList self, at::TensorList source, bool non_blocking) {
  if (!are_alike({self, source})) return at::native::foreach_tensor_copy_list_kernel_slow_(self, source, non_blocking);
  run(kCopy, self, {source});
}

constexpr MultiProgram kNorm{"norm", "multi_norm", "input result:1", "", /*joins=*/true};

// A workgroup sums a tensor; larger tensors take the reduction of their own. The results, a number each, lie in one
// buffer, so that stacking them, which is what norms are for, binds one.
Tensors norm(at::TensorList self, const at::Scalar& order, std::optional<at::ScalarType> dtype) {
  const double p = order.toDouble();
  const bool has_kernel = p == 1 || p == 2 || p == std::numeric_limits<double>::infinity();
  if (!has_kernel || !are_alike({self}) || self[0].scalar_type() != at::kFloat ||
      dtype.value_or(at::kFloat) != at::kFloat)
    return at::native::foreach_tensor_norm_slow(self, order, dtype);
  const at::Tensor shared = empty_tensor({static_cast<int64_t>(self.size())}, {}, at::kFloat);
  MultiTensor launch(kNorm, {}, p == 1 ? 1u : p == 2 ? 2u : 0u);
  launch.set_chunk(kNormElements / 4);
  Tensors results;
  for (size_t i = 0; i < self.size(); ++i) {
    at::Tensor result = empty_tensor({0}, {}, at::kFloat);
    result.set_(shared.storage(), static_cast<int64_t>(i), at::IntArrayRef{}, at::IntArrayRef{});
    const bool is_long = self[i].numel() == 0 || self[i].numel() > kNormElements;
    if (is_long || !launch.add({self[i], result}, {.singles = 0b10, .written = 0b10})) {
      at::linalg_vector_norm_out(result, self[i], order);
    }
    results.push_back(std::move(result));
  }
  launch.flush();
  return results;
}

#define SLOW(name) at::native::foreach_tensor_##name
#define FORMS(Form, op, overload, formula, flags, slow, ...) \
  FORMS_WITH(Form, op, overload, formula, flags, nullptr, slow __VA_OPT__(, ) __VA_ARGS__)
#define FORMS_WITH(Form, op, overload, formula, flags, file, slow, ...)           \
  {                                                                               \
    static constexpr PointwiseRow row = make_row(#op, formula, flags, file);      \
    using Op = Form<row, &SLOW(slow), &SLOW(slow##_) __VA_OPT__(, ) __VA_ARGS__>; \
    native<&Op::functional>(library, "_foreach_" #op overload);                   \
    native<&Op::inplace>(library, "_foreach_" #op "_" overload);                  \
  }
#define UNARY_LIST(op, formula) FORMS(OfOne, op, "", formula, PointwiseRow::none, op##_slow)
#define BINARY_LISTS(op, slow, formula, flags)                              \
  FORMS(OfNumber, op, ".Scalar", formula, flags, slow##_scalar_kernel_slow) \
  FORMS(OfNumbers, op, ".ScalarList", formula, flags, slow##_scalarlist_kernel_slow)
#define TERNARY_LISTS(op, formula)                                                                \
  FORMS(OfThree, op, ".Scalar", formula, PointwiseRow::none, op##_scalar_slow, const at::Scalar&) \
  FORMS(OfThree, op, ".ScalarList", formula, PointwiseRow::none, op##_scalarlist_slow, at::ArrayRef<at::Scalar>)

#define LERP(weight) "select(b - (b - a) * (1.0 - " weight "), a + " weight " * (b - a), abs(" weight ") < 0.5)"

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  constexpr uint16_t kNarrow = PointwiseRow::narrow_scalars, kWide = PointwiseRow::wide_scalars;
  constexpr uint16_t kNone = PointwiseRow::none;
  BINARY_LISTS(add, add, "add(a, b)", kNone)
  BINARY_LISTS(sub, sub, "sub(a, b)", kNone)
  BINARY_LISTS(mul, mul, "mul(a, b)", kWide)
  BINARY_LISTS(div, div, "a / b", kWide)
  BINARY_LISTS(clamp_min, clamp_min, "max(a, b)", kNone)
  BINARY_LISTS(clamp_max, clamp_max, "min(a, b)", kNone)
  BINARY_LISTS(maximum, clamp_min, "max(a, b)", kNone)
  BINARY_LISTS(minimum, clamp_max, "min(a, b)", kNone)
  FORMS(OfLists, add, ".List", "add(a, mul(s0, b))", kNarrow, add_list_kernel_slow, const at::Scalar&)
  FORMS(OfLists, sub, ".List", "sub(a, mul(s0, b))", kNarrow, sub_list_kernel_slow, const at::Scalar&)
  FORMS(OfLists, mul, ".List", "mul(a, b)", kNone, mul_list_kernel_slow)
  FORMS(OfLists, div, ".List", "a / b", kNone, div_list_kernel_slow)
  FORMS(OfLists, clamp_min, ".List", "max(a, b)", kNone, clamp_min_list_kernel_slow)
  FORMS(OfLists, clamp_max, ".List", "min(a, b)", kNone, clamp_max_list_kernel_slow)
  FORMS(OfLists, maximum, ".List", "max(a, b)", kNone, clamp_min_list_kernel_slow)
  FORMS(OfLists, minimum, ".List", "min(a, b)", kNone, clamp_max_list_kernel_slow)
  FORMS(OfTensor, add, ".Tensor", "add(a, mul(s0, b))", kNarrow, add_tensor_kernel_slow, const at::Scalar&)
  FORMS(OfTensor, mul, ".Tensor", "mul(a, b)", kNone, mul_tensor_kernel_slow)
  FORMS(OfTensor, div, ".Tensor", "a / b", kNone, div_tensor_kernel_slow)
  TERNARY_LISTS(addcmul, "add(a, mul(mul(s0, b), c))")
  TERNARY_LISTS(addcdiv, "a + s0 * b / c")
  FORMS(OfWeight, lerp, ".Scalar", LERP("s0"), kNone, lerp_list_kernel_slow, const at::Scalar&)
  FORMS(OfWeight, lerp, ".ScalarList", LERP("s0"), kNone, lerp_scalarlist_kernel_slow, at::ArrayRef<at::Scalar>)
  FORMS(OfWeights, lerp, ".List", LERP("c"), kNone, ternary_lerp_slow)
  UNARY_LIST(sqrt, "sqrt(a)")
  UNARY_LIST(rsqrt, "rsqrt(a)")
  UNARY_LIST(neg, "neg(a)")
  UNARY_LIST(abs, "abs(a)")
  UNARY_LIST(sign, "sign(a)")
  UNARY_LIST(reciprocal, "1.0 / a")
  FORMS_WITH(OfLists, pow, ".List", "pow(a, b)", kNone, "transcendental", pow_list_kernel_slow)
  native<&power_of_lists>(library, "_foreach_pow.Scalar");
  native<&power_of_lists_>(library, "_foreach_pow_.Scalar");
  native<&powers_of_number>(library, "_foreach_pow.ScalarAndTensor");
  native<&zero_>(library, "_foreach_zero_");
  native<&copy_>(library, "_foreach_copy_");
  native<&norm>(library, "_foreach_norm.Scalar");
}

}  // namespace
}  // namespace torch_webgpu
