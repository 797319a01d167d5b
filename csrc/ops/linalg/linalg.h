// Building blocks of factorizations. Matrices are tensors [batch, rows, columns] of any strides, changed in place.
#pragma once
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "families/structured.h"

namespace torch_webgpu {

// Merges all batch dimensions into one: a view, or a copy if no view exists. Never use it for a tensor that is written.
at::Tensor as_batch(const at::Tensor& tensor);
at::Tensor as_written_batch(const at::Tensor& tensor);
at::Tensor block(const at::Tensor& a, int64_t row, int64_t rows, int64_t column, int64_t columns);

// Where to cut a matrix in two: at a multiple of `leaf`, what a kernel takes whole.
inline int64_t head_of(int64_t size, int64_t leaf) { return leaf * std::max<int64_t>(1, size / leaf / 2); }

// LAPACK has no half precision; `name` is what the CPU's error says.
void check_lapack_dtype(const at::Tensor& tensor, const char* name);

// b = a^-1 b, of the upper or the lower triangle of a; the diagonal counts as ones when `unit`.
void solve_triangular(const at::Tensor& a, const at::Tensor& b, bool upper, bool unit = false);
// out -= a b
void subtract_product(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b);

// Outputs whose strides are the op's, not the caller's: where out= has others, the op works on a tensor of its own.
template <class Op, size_t Outputs>
struct Proxied final : Structured<Op, Outputs> {
  using Base = Structured<Op, Outputs>;
  using Base::Base;

  void set_output_strided(int64_t index, at::IntArrayRef sizes, at::IntArrayRef strides,
                          at::TensorOptions options) override {
    Base::set_output_raw_strided(index, sizes, strides, options);
    at::Tensor& output = this->outputs[index];
    if (this->form == Form::functional || strides.empty() || output.strides() == strides) return;
    given[index] = output;
    output = empty_tensor(sizes, strides, output.scalar_type());
  }
  void finish() {
    for (size_t i = 0; i < Outputs; ++i) {
      if (given[i].defined()) given[i].copy_(this->outputs[i]);
    }
  }

  std::array<at::Tensor, Outputs> given;
};

// The body of an op whose implementation in PyTorch consists of other ops and of stubs, and runs on any device that
// has those. Op is at::native::structured_<op>_out.
template <class Op, class Meta = decltype(&Op::meta), class Impl = decltype(&Op::impl)>
struct Composed;

template <class Op, class Base, class... Args, class... All>
struct Composed<Op, void (Base::*)(Args...), void (Op::*)(All...)> {
  static void run(Proxied<Op, sizeof...(All) - sizeof...(Args)>& op, Args... args) {
    op.meta(args...);
    std::apply([&](const auto&... outputs) { op.impl(args..., outputs...); }, op.outputs);
  }
};

#define COMPOSED(name, out_overload)                                 \
  {                                                                  \
    using Op = Forms<Composed<at::native::structured_##name##_out>>; \
    native<&Op::functional>(library, #name);                         \
    native<&Op::out>(library, #name "." #out_overload);              \
  }

}  // namespace torch_webgpu
