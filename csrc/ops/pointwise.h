// Turns a row of the table into an op: a formula with its functional, in-place and out forms.
#pragma once
#include <torch/library.h>

#include <string>
#include <tuple>
#include <utility>

#include "ops/elementwise.h"
#include "ops/native.h"
#include "ops/structured.h"

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

constexpr PointwiseRow make_row(const char* name, const char* formula, uint8_t flags = PointwiseRow::none,
                                const char* library = nullptr, uint8_t words = 0) {
  return {name, formula, flags, count_scalars(formula), library, words};
}

namespace detail {

// The Scalar arguments of an op, in order, are the formula's s0, s1, ...
template <class T>
auto scalar_argument(const T& argument) {
  if constexpr (std::is_same_v<T, c10::Scalar>) {
    return std::make_tuple(&argument);
  } else {
    return std::tuple<>();
  }
}

}  // namespace detail

// Meta is at::meta::structured_<op>; Row is the row's constant. Signatures are read off Meta::meta.
template <class Meta, const PointwiseRow& Row, class Signature = decltype(&Meta::meta)>
struct Pointwise;

template <class Meta, const PointwiseRow& Row, class Base, class Self, class... Rest>
struct Pointwise<Meta, Row, void (Base::*)(Self, Rest...)> {
  static void run(Structured<Meta>& op, Self self, Rest... rest) {
    op.meta(self, rest...);
    std::apply([&](auto*... scalars) { elementwise(op, Row, op.common_dtype(), {scalars...}); },
               std::tuple_cat(detail::scalar_argument(self), detail::scalar_argument(rest)...));
  }
  static at::Tensor functional(Self self, Rest... rest) {
    Structured<Meta> op(Form::functional);
    run(op, self, rest...);
    return std::move(op.outputs[0]);
  }
  static at::Tensor& inplace(at::Tensor& self, Rest... rest) {
    Structured<Meta> op(Form::inplace);
    op.outputs[0] = self;
    run(op, self, rest...);
    return self;
  }
  static at::Tensor& out(Self self, Rest... rest, at::Tensor& out) {
    Structured<Meta> op(Form::out);
    op.outputs[0] = out;
    run(op, self, rest...);
    return out;
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

// Registers `name.overload`, `name_.overload` and `name.out_overload`, as far as PyTorch has them.
template <class Op>
void register_forms(torch::Library& library, const std::string& name, const std::string& overload,
                    const std::string& out_overload) {
  const std::string suffix = overload.empty() ? "" : "." + overload;
  native<&Op::functional>(library, name + suffix);
  native<&Op::inplace>(library, name + "_" + suffix);
  native<&Op::out>(library, name + "." + out_overload);
}

}  // namespace torch_webgpu
