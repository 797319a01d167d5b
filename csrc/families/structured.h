// PyTorch's own shape, dtype, out= and overlap rules for an op, with outputs made on this device.
#pragma once
#include <ATen/TensorIterator.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/as_strided_native.h>

#include <array>
#include <tuple>
#include <utility>

#include "families/tensor.h"

namespace torch_webgpu {

enum class Form { functional, inplace, out };

void check_inplace(const at::Tensor& self, at::IntArrayRef sizes, const at::TensorOptions& options);
void resize_out(const at::Tensor& out, at::IntArrayRef sizes, at::IntArrayRef strides,
                const at::TensorOptions& options);

// Meta is at::meta::structured_<op>: calling meta(...) on this object validates the arguments and fills `outputs`.
template <class Meta, size_t Outputs = 1>
struct Structured : Meta {
  explicit Structured(Form form) : form(form) {}

  const at::Tensor& maybe_get_output(int64_t index) override { return outputs[index]; }
  void set_output_strided(int64_t index, at::IntArrayRef sizes, at::IntArrayRef strides,
                          at::TensorOptions options) override {
    set_output_raw_strided(index, sizes, strides, options);
  }
  void set_output_raw_strided(int64_t index, at::IntArrayRef sizes, at::IntArrayRef strides,
                              at::TensorOptions options) override {
    at::Tensor& output = outputs[index];
    if (form == Form::functional) {
      output = empty_tensor(sizes, strides, c10::typeMetaToScalarType(options.dtype()), options.memory_format_opt());
    } else if (form == Form::inplace) {
      check_inplace(output, sizes, options);
    } else {
      resize_out(output, sizes, strides, options);
    }
    if constexpr (std::is_base_of_v<at::TensorIteratorBase, Meta>) {
      at::TensorIteratorBase::set_output_raw_strided(index, sizes, strides, options);
    }
  }

  void finish() {}  // what an op does once its result is there, with out=

  static constexpr size_t kOutputs = Outputs;
  const Form form;
  std::array<at::Tensor, Outputs> outputs;
};

namespace detail {

template <size_t>
using Result = at::Tensor;
template <size_t>
using Out = at::Tensor&;
template <class... T>
using OneOrTuple = std::conditional_t<sizeof...(T) == 1, std::tuple_element_t<0, std::tuple<T...>>, std::tuple<T...>>;

template <class Body, class Op, class Outputs, class... Args>
struct FormsWith;

template <class Body, class Op, size_t... I, class Self, class... Rest>
struct FormsWith<Body, Op, std::index_sequence<I...>, Self, Rest...> {
  static OneOrTuple<Result<I>...> functional(Self self, Rest... rest) {
    Op op(Form::functional);
    Body::run(op, self, rest...);
    return {std::move(op.outputs[I])...};
  }
  static at::Tensor& inplace(at::Tensor& self, Rest... rest) {
    Op op(Form::inplace);
    op.outputs[0] = self;
    Body::run(op, self, rest...);
    return self;
  }
  static OneOrTuple<Out<I>...> out(Self self, Rest... rest, Out<I>... out) {
    Op op(Form::out);
    op.outputs = {out...};
    Body::run(op, self, rest...);
    op.finish();
    return OneOrTuple<Out<I>...>(out...);
  }
};

}  // namespace detail

// The functional, in-place and out= forms of an op, as the dispatcher calls them. Body::run(op, arguments...) takes a
// Structured and the op's own arguments, calls op.meta(...) and computes op.outputs.
template <class Body, class Run = decltype(&Body::run)>
struct Forms;

template <class Body, class Op, class... Args>
struct Forms<Body, void (*)(Op&, Args...)>
    : detail::FormsWith<Body, Op, std::make_index_sequence<Op::kOutputs>, Args...> {};

// The body of an op whose meta() takes the op's own arguments. Apply::run(op, arguments...) comes after it.
template <class Meta, class Apply, size_t Outputs = 1, class Signature = decltype(&Meta::meta)>
struct AfterMeta;

template <class Meta, class Apply, size_t Outputs, class Result, class Base, class... Args>
struct AfterMeta<Meta, Apply, Outputs, Result (Base::*)(Args...)> {
  static void run(Structured<Meta, Outputs>& op, Args... args) {
    op.meta(args...);
    Apply::run(op, args...);
  }
};

template <class Meta, class Apply, size_t Outputs = 1>
using FormsOf = Forms<AfterMeta<Meta, Apply, Outputs>>;

}  // namespace torch_webgpu
