// The table of reductions, and those with one result of their own form.
#include <ATen/native/ReduceOpsUtils.h>
#include <ATen/ops/all_meta.h>
#include <ATen/ops/amax_meta.h>
#include <ATen/ops/amin_meta.h>
#include <ATen/ops/any.h>
#include <ATen/ops/any_meta.h>
#include <ATen/ops/argmax_meta.h>
#include <ATen/ops/argmin_meta.h>
#include <ATen/ops/item.h>
#include <ATen/ops/mean_meta.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/prod_meta.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/sum_meta.h>
#include <torch/library.h>

#include "families/reduce.h"
#include "families/reduce_rows.h"
#include "families/structured.h"
#include "ops/native.h"

namespace torch_webgpu {
namespace {

// clang-format off
//                           name      fields  identity                  map         combine                           finish
constexpr ReduceRow kSum    {"sum",    "T",    "zero",                   "a",        "return Acc(add(p.x, q.x));",     "p.x"};
constexpr ReduceRow kNansum {"nansum", "T",    "zero",                   "select(a, zero, is_nan(a))", "return Acc(add(p.x, q.x));", "p.x"};
constexpr ReduceRow kProd   {"prod",   "T",    "one",                    "a",        "return Acc(mul(p.x, q.x));",     "p.x"};
constexpr ReduceRow kNonzero{"count_nonzero", "u", "0u",                 "u32(ne(a, zero))", "return Acc(p.x + q.x);", "p.x", ReduceRow::index};
constexpr ReduceRow kMean   {"mean",   "T",    "zero",                   "a",        "return Acc(add(p.x, q.x));",     "p.x / f32(count)"};
constexpr ReduceRow kAmax   {"amax",   "T",    "lowest()",               "a",        "return Acc(max(p.x, q.x));",     "p.x"};
constexpr ReduceRow kAmin   {"amin",   "T",    "highest()",              "a",        "return Acc(min(p.x, q.x));",     "p.x"};
constexpr ReduceRow kAny    {"any",    "T",    "false",                  "a",        "return Acc(p.x || q.x);",        "p.x"};
constexpr ReduceRow kAll    {"all",    "T",    "true",                   "a",        "return Acc(p.x && q.x);",        "p.x"};
constexpr ReduceRow kArgmax {"argmax", "Tu",   "lowest(), 0xffffffffu",  "a, index", FIRST_BEST("gt"),                 "p.y", ReduceRow::index};
constexpr ReduceRow kArgmin {"argmin", "Tu",   "highest(), 0xffffffffu", "a, index", FIRST_BEST("lt"),                 "p.y", ReduceRow::index};
// clang-format on

using DimList = at::OptionalIntArrayRef;

// The type that a row computes in, chosen by the dtypes of input and output.
at::ScalarType of_output(const at::Tensor&, const at::Tensor& output) { return output.scalar_type(); }
at::ScalarType of_input(const at::Tensor& input, const at::Tensor&) { return input.scalar_type(); }
at::ScalarType of_bool(const at::Tensor&, const at::Tensor&) { return at::kBool; }

template <class Meta, const ReduceRow& Row, at::ScalarType (*Compute)(const at::Tensor&, const at::Tensor&),
          class Signature = decltype(&Meta::meta)>
struct Reduction;

template <class Meta, const ReduceRow& Row, at::ScalarType (*Compute)(const at::Tensor&, const at::Tensor&), class Base,
          class... Rest>
struct Reduction<Meta, Row, Compute, void (Base::*)(const at::Tensor&, Rest...)> {
  static void run(Structured<Meta>& op, const at::Tensor& self, Rest... rest) {
    op.meta(self, rest...);
    const at::Tensor& output = op.outputs[0];
    // With one dimension an op takes an int or an optional int; without any, nothing.
    c10::SmallVector<int64_t, 8> dims;
    bool keepdim = false;
    (collect(dims, keepdim, rest), ...);
    reduce(Row, self, dims.empty() ? DimList() : DimList(dims), keepdim, output, Compute(self, output));
  }

 private:
  using Collected = c10::SmallVector<int64_t, 8>;
  static void collect(Collected& dims, bool&, at::IntArrayRef given) { dims.append(given.begin(), given.end()); }
  static void collect(Collected& dims, bool&, DimList given) {
    if (given) dims.append(given->begin(), given->end());
  }
  static void collect(Collected& dims, bool&, int64_t given) { dims.push_back(given); }
  static void collect(Collected& dims, bool&, std::optional<int64_t> given) {
    if (given) dims.push_back(*given);
  }
  static void collect(Collected&, bool& keepdim, bool given) { keepdim = given; }
  static void collect(Collected&, bool&, std::optional<at::ScalarType>) {}
};

// The one result of all elements, or of `dims`, for ops that PyTorch has no structured rules for.
at::Tensor reduced(const ReduceRow& row, const at::Tensor& self, DimList dims, bool keepdim, at::ScalarType dtype,
                   at::ScalarType compute) {
  const auto shape = at::meta::get_reduction_shape(self, dims.value_or(at::IntArrayRef()), keepdim);
  const at::Tensor result = empty_tensor(shape, {}, dtype);
  reduce(row, self, dims, keepdim, result, compute);
  return result;
}

at::Tensor prod(const at::Tensor& self, std::optional<at::ScalarType> dtype) {
  const at::ScalarType type = at::native::get_dtype_from_self(self, dtype, true);
  return reduced(kProd, self, {}, false, type, type);
}

at::Tensor& nansum_out(const at::Tensor& self, DimList dims, bool keepdim, std::optional<at::ScalarType> dtype,
                       at::Tensor& out) {
  if (c10::isIntegralType(self.scalar_type(), true)) return at::sum_out(out, self, dims, keepdim, dtype);
  const at::ScalarType type = at::native::get_dtype_from_result(out, dtype);
  resize_out(out, at::meta::get_reduction_shape(self, dims.value_or(at::IntArrayRef()), keepdim), {},
             self.options().dtype(type));
  reduce(kNansum, self, dims, keepdim, out, type);
  return out;
}

at::Tensor nansum(const at::Tensor& self, DimList dims, bool keepdim, std::optional<at::ScalarType> dtype) {
  if (c10::isIntegralType(self.scalar_type(), true)) return at::sum(self, dims, keepdim, dtype);
  const at::ScalarType type = at::native::get_dtype_from_self(self, dtype, true);
  return reduced(kNansum, self, dims, keepdim, type, type);
}

at::Tensor count_nonzero(const at::Tensor& self, at::IntArrayRef dims) {
  return reduced(kNonzero, self, dims, false, at::kLong, self.scalar_type());
}

at::Tensor trace(const at::Tensor& self) {
  TORCH_CHECK(self.dim() == 2, "trace: expected a matrix, but got tensor with dim ", self.dim());
  return at::sum(self.diagonal());
}

bool equal(const at::Tensor& self, const at::Tensor& other) {
  TORCH_CHECK(self.device() == other.device(), "Cannot compare two tensors on different devices. Got: ", self.device(),
              " and ", other.device());
  TORCH_CHECK(self.scalar_type() == other.scalar_type(), "Expected all tensors to have the same dtype, but got ",
              self.scalar_type(), " and ", other.scalar_type());
  if (self.sizes() != other.sizes()) return false;
  return self.numel() == 0 || !at::ne(self, other).any().item<bool>();
}

#define REDUCTION(name, overload, out_overload, row, compute)                                        \
  {                                                                                                  \
    using Op = Forms<Reduction<at::meta::structured_##name##overload, row, compute>>;                \
    const std::string full = sizeof(#overload) > 1 ? #name "." + std::string(&#overload[1]) : #name; \
    native<&Op::functional>(library, full);                                                          \
    native<&Op::out>(library, #name "." #out_overload);                                              \
  }

// clang-format off
TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  //         name    overload      out overload  row      computes in the dtype of
  REDUCTION( sum,    _dim_IntList, IntList_out,  kSum,    of_output)
  REDUCTION( mean,   _dim,         out,          kMean,   of_output)
  REDUCTION( prod,   _dim_int,     int_out,      kProd,   of_output)
  REDUCTION( amax,   ,             out,          kAmax,   of_input)
  REDUCTION( amin,   ,             out,          kAmin,   of_input)
  REDUCTION( any,    ,             all_out,      kAny,    of_bool)
  REDUCTION( any,    _dim,         out,          kAny,    of_bool)
  REDUCTION( all,    ,             all_out,      kAll,    of_bool)
  REDUCTION( all,    _dim,         out,          kAll,    of_bool)
  REDUCTION( argmax, ,             out,          kArgmax, of_input)
  REDUCTION( argmin, ,             out,          kArgmin, of_input)
  native<&prod>(library, "prod");
  native<&nansum>(library, "nansum");
  native<&nansum_out>(library, "nansum.out");
  native<&count_nonzero>(library, "count_nonzero.dim_IntList");
  native<&trace>(library, "trace");
  native<&equal>(library, "equal");
}
// clang-format on

}  // namespace
}  // namespace torch_webgpu
