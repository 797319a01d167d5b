// Vector norms of every order, and renorm by them.
#include <ATen/TensorIterator.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/linalg_vector_norm_meta.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/norm_meta.h>
#include <ATen/ops/renorm_meta.h>
#include <torch/library.h>

#include <cmath>
#include <numeric>

#include "families/reduce.h"
#include "families/structured.h"
#include "ops/pointwise/table.h"

namespace torch_webgpu {
namespace {

using DimList = at::OptionalIntArrayRef;
using Dtype = std::optional<at::ScalarType>;

// clang-format off
#define ADDED "return Acc(add(p.x, q.x));"
//                             name    fields  identity     map                                 combine                       finish
constexpr ReduceRow kCount    {"norm", "f",    "0.0",       "f32_from_bool(bool_from_f32(a))",  ADDED,                        "p.x"};
constexpr ReduceRow kSum      {"norm", "f",    "0.0",       "abs(a)",                           ADDED,                        "p.x"};
constexpr ReduceRow kRoot     {"norm", "f",    "0.0",       "a * a",                            ADDED,                        "sqrt(p.x)"};
constexpr ReduceRow kLargest  {"norm", "f",    "0.0",       "abs(a)",                           "return Acc(max(p.x, q.x));", "p.x"};
constexpr ReduceRow kSmallest {"norm", "f",    "highest()", "abs(a)",                           "return Acc(min(p.x, q.x));", "p.x"};
constexpr ReduceRow kPower    {"norm", "f",    "0.0",       "norm_power(abs(a), scalar())",     ADDED,                        "norm_power(p.x, 1.0 / scalar())",
                               ReduceRow::value, nullptr, ReduceRow::value, "power"};
// clang-format on

constexpr PointwiseRow kScale = make_row("renorm", "select(1.0, s0 / (a + 1e-7), gt(a, s0))");

const ReduceRow& row_of(double order) {
  if (order == 0) return kCount;
  if (order == 1) return kSum;
  if (order == 2) return kRoot;
  if (std::isinf(order)) return order > 0 ? kLargest : kSmallest;
  return kPower;
}

void norm(const at::Tensor& self, double order, at::IntArrayRef dims, bool keepdim, const at::Tensor& result) {
  reduce(row_of(order), self, dims, keepdim, result, at::kFloat, {}, order);
}

struct VectorNorm {
  using Op = Structured<at::meta::structured_linalg_vector_norm>;
  static void run(Op& op, const at::Tensor& self, const at::Scalar& order, DimList dims, bool keepdim, Dtype dtype) {
    op.meta(self, order, dims, keepdim, dtype);
    norm(self, order.toDouble(), dims.value_or(at::IntArrayRef()), keepdim, op.outputs[0]);
  }
};

// torch.norm of a list of dimensions; with a dtype as its last argument, or without.
template <class Meta, class... Given>
struct Norm {
  using Op = Structured<Meta>;
  using Order = std::optional<at::Scalar>;
  static void run(Op& op, const at::Tensor& self, const Order& order, at::IntArrayRef dims, bool keepdim,
                  Given... dtype) {
    op.meta(self, order ? at::OptionalScalarRef(&*order) : at::OptionalScalarRef(), dims, keepdim, dtype...);
    norm(self, order.value_or(2).toDouble(), dims, keepdim, op.outputs[0]);
  }
};

struct Renorm {
  using Op = Structured<at::meta::structured_renorm>;
  static void run(Op& op, const at::Tensor& self, const at::Scalar& p, int64_t dim, const at::Scalar& maxnorm) {
    op.meta(self, p, dim, maxnorm);
    c10::SmallVector<int64_t, 8> dims(self.dim());
    std::iota(dims.begin(), dims.end(), 0);
    dims.erase(dims.begin() + at::maybe_wrap_dim(dim, self.dim()));
    const at::Tensor length = at::linalg_vector_norm(self, p.toDouble(), at::IntArrayRef(dims), true, at::kFloat),
                     factor = empty_tensor(length.sizes(), {}, self.scalar_type());
    auto iterator = at::TensorIteratorConfig()
                        .check_all_same_dtype(false)
                        .add_owned_output(factor)
                        .add_owned_const_input(length)
                        .build();
    elementwise(iterator, kScale, at::kFloat, {&maxnorm});
    at::Tensor out = op.outputs[0];
    at::mul_out(out, self, factor);
  }
};

using NormDims = Forms<Norm<at::meta::structured_norm_ScalarOpt_dim>>;
using NormDimsDtype = Forms<Norm<at::meta::structured_norm_ScalarOpt_dim_dtype, at::ScalarType>>;

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  native<&Forms<VectorNorm>::functional>(library, "linalg_vector_norm");
  native<&Forms<VectorNorm>::out>(library, "linalg_vector_norm.out");
  native<&NormDims::functional>(library, "norm.ScalarOpt_dim");
  native<&NormDims::out>(library, "norm.out");
  native<&NormDimsDtype::functional>(library, "norm.ScalarOpt_dim_dtype");
  native<&NormDimsDtype::out>(library, "norm.dtype_out");
  register_forms<Forms<Renorm>>(library, "renorm", "", "out");
}

}  // namespace
}  // namespace torch_webgpu
