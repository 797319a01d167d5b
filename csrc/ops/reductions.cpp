// The table of reductions.
#include <ATen/ops/all_meta.h>
#include <ATen/ops/amax_meta.h>
#include <ATen/ops/amin_meta.h>
#include <ATen/ops/any.h>
#include <ATen/ops/any_meta.h>
#include <ATen/ops/argmax_meta.h>
#include <ATen/ops/argmin_meta.h>
#include <ATen/ops/item.h>
#include <ATen/ops/mean_meta.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/sum_meta.h>
#include <torch/library.h>

#include "ops/native.h"
#include "ops/reduce.h"
#include "ops/structured.h"

namespace torch_webgpu {
namespace {

// Of equal values the first wins, and NaN wins over all.
#define FIRST_BEST(better)                                                      \
  "if (p.y == 0xffffffffu) { return q; } if (q.y == 0xffffffffu) { return p; }" \
  "let nan_p = is_nan(p.x); let nan_q = is_nan(q.x);"                           \
  "let tie = (nan_p && nan_q) || eq(p.x, q.x);"                                 \
  "if ((tie && q.y < p.y) || (!tie && !nan_p && (nan_q || " better "(q.x, p.x)))) { return q; } return p;"

// clang-format off
//                           name      fields  identity                  map         combine                           finish
constexpr ReduceRow kSum    {"sum",    "T",    "zero",                   "a",        "return Acc(add(p.x, q.x));",     "p.x"};
constexpr ReduceRow kMean   {"mean",   "T",    "zero",                   "a",        "return Acc(add(p.x, q.x));",     "p.x / f32(count)"};
constexpr ReduceRow kAmax   {"amax",   "T",    "lowest()",               "a",        "return Acc(max(p.x, q.x));",     "p.x"};
constexpr ReduceRow kAmin   {"amin",   "T",    "highest()",              "a",        "return Acc(min(p.x, q.x));",     "p.x"};
constexpr ReduceRow kAny    {"any",    "T",    "false",                  "a",        "return Acc(p.x || q.x);",        "p.x"};
constexpr ReduceRow kAll    {"all",    "T",    "true",                   "a",        "return Acc(p.x && q.x);",        "p.x"};
constexpr ReduceRow kArgmax {"argmax", "Tu",   "lowest(), 0xffffffffu",  "a, index", FIRST_BEST("gt"),                 "p.y", ReduceRow::index};
constexpr ReduceRow kArgmin {"argmin", "Tu",   "highest(), 0xffffffffu", "a, index", FIRST_BEST("lt"),                 "p.y", ReduceRow::index};
// clang-format on

using DimList = at::OptionalIntArrayRef;

// In what a row computes, from the dtypes of its input and output.
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
  static at::Tensor functional(const at::Tensor& self, Rest... rest) {
    Structured<Meta> op(Form::functional);
    run(op, self, rest...);
    return std::move(op.outputs[0]);
  }
  static at::Tensor& out(const at::Tensor& self, Rest... rest, at::Tensor& out) {
    Structured<Meta> op(Form::out);
    op.outputs[0] = out;
    run(op, self, rest...);
    return out;
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
    using Op = Reduction<at::meta::structured_##name##overload, row, compute>;                       \
    const std::string full = sizeof(#overload) > 1 ? #name "." + std::string(&#overload[1]) : #name; \
    native<&Op::functional>(library, full);                                                          \
    native<&Op::out>(library, #name "." #out_overload);                                              \
  }

// clang-format off
TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  //         name    overload      out overload  row      computes in the dtype of
  REDUCTION( sum,    _dim_IntList, IntList_out,  kSum,    of_output)
  REDUCTION( mean,   _dim,         out,          kMean,   of_output)
  REDUCTION( amax,   ,             out,          kAmax,   of_input)
  REDUCTION( amin,   ,             out,          kAmin,   of_input)
  REDUCTION( any,    ,             all_out,      kAny,    of_bool)
  REDUCTION( any,    _dim,         out,          kAny,    of_bool)
  REDUCTION( all,    ,             all_out,      kAll,    of_bool)
  REDUCTION( all,    _dim,         out,          kAll,    of_bool)
  REDUCTION( argmax, ,             out,          kArgmax, of_input)
  REDUCTION( argmin, ,             out,          kArgmin, of_input)
  native<&equal>(library, "equal");
}
// clang-format on

}  // namespace
}  // namespace torch_webgpu
