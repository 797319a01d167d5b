// Turns a row of the table into an op: a formula with its functional, in-place and out forms.
#pragma once
#include <torch/library.h>

#include <string>
#include <tuple>
#include <utility>

#include "families/formulas.h"
#include "families/pointwise.h"
#include "families/structured.h"
#include "ops/native.h"

namespace torch_webgpu {

// How many of the scalars s0, s1, ... a formula uses.
constexpr uint8_t count_scalars(const char* formula) {
  uint8_t count = 0;
  for (const char* at = formula; *at; ++at) {
    const bool starts = at == formula || !((at[-1] >= 'a' && at[-1] <= 'z') || at[-1] == '_');
    if (starts && at[0] == 's' && at[1] >= '0' && at[1] <= '9' && at[1] - '0' >= count) count = at[1] - '0' + 1;
  }
  return count;
}

constexpr PointwiseRow make_row(const char* name, const char* formula, uint16_t flags = PointwiseRow::none,
                                const char* library = nullptr, uint8_t words = 0) {
  return {name, formula, flags, count_scalars(formula), library, words};
}

namespace detail {

// The Scalar and double arguments of an op, in order, are the formula's s0, s1, ...
template <class T>
auto scalar_argument(const T& argument) {
  if constexpr (std::is_same_v<T, c10::Scalar> || std::is_same_v<T, double>) {
    return std::tuple<c10::Scalar>(argument);
  } else {
    return std::tuple<>();
  }
}

}  // namespace detail

// A Scalar argument as the CPU takes it: in the dtype, or in float32 where a smaller float computes in that. Raises
// where it does not fit.
inline at::Scalar taken(const PointwiseRow& row, at::ScalarType dtype, const at::Scalar& value) {
  const bool wide = at::isReducedFloatingType(dtype) && (row.flags & PointwiseRow::narrow_scalars) == 0;
  return fitted(wide ? at::kFloat : dtype, value);
}

namespace detail {

template <class... Args>
void elementwise_of(at::TensorIteratorBase& iterator, const PointwiseRow& row, at::ScalarType compute,
                    const Args&... args) {
  const auto run = [&](const auto&... scalars) { elementwise(iterator, row, compute, {&scalars...}); };
  if (row.scalars == 0) return run();  // what is an operand as well, such as the number in a comparison
  std::apply([&](const auto&... scalars) { run(taken(row, compute, scalars)...); },
             std::tuple_cat(scalar_argument(args)...));
}

}  // namespace detail

// One formula, or one chosen by the op's arguments.
template <const PointwiseRow& Row>
struct Formula {
  template <class Op, class... Args>
  static void run(Op& op, const Args&... args) {
    detail::elementwise_of(op, Row, op.common_dtype(), args...);
  }
};
template <auto Choose>
struct Choice {
  template <class Op, class... Args>
  static void run(Op& op, const Args&... args) {
    detail::elementwise_of(op, Choose(args...), op.common_dtype(), args...);
  }
};
// PyTorch's own implementation, which ends in stubs: Meta is at::native::structured_<op>.
struct Native {
  template <class Op, class... Args>
  static void run(Op& op, const Args&... args) {
    op.impl(args..., op.outputs[0]);
  }
};

template <class Meta, const PointwiseRow& Row>
using Pointwise = FormsOf<Meta, Formula<Row>>;

// The kernel of a stub, by which PyTorch's own implementation of an op reaches its device. Takes the stub's pointer
// type.
template <const PointwiseRow& Row, class Function>
struct Stub;

template <const PointwiseRow& Row, class Iterator, class... Args>
struct Stub<Row, void (*)(Iterator&, Args...)> {
  static void run(Iterator& iterator, Args... args) {
    detail::elementwise_of(iterator, Row, iterator.common_dtype(), args...);
  }
  static void run_as_bool(Iterator& iterator, Args... args) {
    detail::elementwise_of(iterator, Row, at::kBool, args...);
  }
};

// Ops that are not structured in PyTorch and take one tensor.
template <const PointwiseRow& Row>
struct Unary {
  static at::Tensor& out(const at::Tensor& self, at::Tensor& out) {
    auto iterator = at::TensorIterator::unary_op(out, self);
    elementwise(iterator, Row, self.scalar_type());
    return out;
  }
  static at::Tensor functional(const at::Tensor& self) {
    at::Tensor result;
    auto iterator = at::TensorIterator::unary_op(result, self);
    elementwise(iterator, Row, self.scalar_type());
    return iterator.output();
  }
  static at::Tensor& inplace(at::Tensor& self) { return out(self, self); }
};

// The dtypes that a row takes, by its flags.
constexpr DtypeSet taken_by(uint16_t flags) {
  constexpr DtypeSet with_double = kComputed | set_of({at::kDouble});
  const auto has = [&](uint16_t all) { return (flags & all) == all; };
  return has(kWithStored)    ? kStored
         : has(kWithOrdered) ? with_double | kUnsigned
         : has(kWithSigned)  ? with_double | set_of({at::kComplexFloat, at::kComplexDouble})
         : has(kWithDouble)  ? with_double
                             : kComputed;
}

// The tables' rows. `overload` is empty or begins with an underscore, as in the name of the meta.
#define ROW(name, overload, out_overload, formula, flags, file)                                                     \
  {                                                                                                                 \
    static constexpr PointwiseRow row = make_row(#name, formula, flags, file);                                      \
    list_formula(#name #overload, row);                                                                             \
    using Op = Pointwise<at::meta::structured_##name##overload, row>;                                               \
    register_forms<Op, taken_by(flags)>(library, #name, sizeof(#overload) > 1 ? &#overload[1] : "", #out_overload); \
  }
#define POINTWISE(name, overload, out_overload, formula) \
  ROW(name, overload, out_overload, formula, PointwiseRow::none, nullptr)
#define COMPARISON(name, overload, out_overload, formula, taken) \
  ROW(name, overload, out_overload, formula, PointwiseRow::returns_bool | taken, nullptr)
// The formula depends on an argument: `choose` takes them all and returns a row.
#define CHOICE(name, overload, out_overload, choose)                                               \
  {                                                                                                \
    using Op = FormsOf<at::meta::structured_##name##overload, Choice<choose>>;                     \
    register_forms<Op>(library, #name, sizeof(#overload) > 1 ? &#overload[1] : "", #out_overload); \
  }
// PyTorch's own implementation; `implementation` is what follows structured_ in its name.
#define NATIVE(name, overload, out_overload, implementation)                                       \
  {                                                                                                \
    using Op = FormsOf<at::native::structured_##implementation, Native>;                           \
    register_forms<Op>(library, #name, sizeof(#overload) > 1 ? &#overload[1] : "", #out_overload); \
  }
#define STUB(stub, formula, flags, file)                                                               \
  {                                                                                                    \
    static constexpr PointwiseRow row = make_row(#stub, formula, flags, file);                         \
    list_formula(#stub, row);                                                                          \
    at::native::stub.set_privateuse1_dispatch_ptr(&Stub<row, decltype(at::native::stub)::FnPtr>::run); \
  }
// Not structured in PyTorch, one tensor.
#define UNARY(name, formula, flags)                                         \
  {                                                                         \
    static constexpr PointwiseRow row = make_row(#name, formula, flags);    \
    list_formula(#name, row);                                               \
    register_forms<Unary<row>, taken_by(flags)>(library, #name, "", "out"); \
  }

}  // namespace torch_webgpu
