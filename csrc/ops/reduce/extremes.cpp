// Largest and smallest: max and min of all elements and of a dimension, with the index; aminmax.
#include <ATen/native/Resize.h>
#include <ATen/ops/aminmax_meta.h>
#include <ATen/ops/max_meta.h>
#include <ATen/ops/min_meta.h>
#include <torch/library.h>

#include "families/reduce.h"
#include "families/reduce_rows.h"
#include "families/structured.h"
#include "ops/native.h"

namespace torch_webgpu {
namespace {

// clang-format off
//                            name       fields  identity                  map         combine                                             finish
constexpr ReduceRow kMaxAll  {"max",     "T",    "lowest()",               "a",        "return Acc(max(p.x, q.x));",                       "p.x"};
constexpr ReduceRow kMinAll  {"min",     "T",    "highest()",              "a",        "return Acc(min(p.x, q.x));",                       "p.x"};
constexpr ReduceRow kMaxDim  {"max",     "Tu",   "lowest(), 0xffffffffu",  "a, index", FIRST_BEST("gt"),                                   "p.x", ReduceRow::value, "p.y", ReduceRow::index};
constexpr ReduceRow kMinDim  {"min",     "Tu",   "highest(), 0xffffffffu", "a, index", FIRST_BEST("lt"),                                   "p.x", ReduceRow::value, "p.y", ReduceRow::index};
constexpr ReduceRow kAminmax {"aminmax", "TT",   "highest(), lowest()",    "a, a",     "return Acc(min(p.x, q.x), max(p.y, q.y));",        "p.x", ReduceRow::value, "p.y"};
// clang-format on

// Ops of one dimension, or none, with two results.
template <class Meta, const ReduceRow& Row, class Dim>
struct Pair {
  using Op = Structured<Meta, 2>;
  static void run(Op& op, const at::Tensor& self, Dim dim, bool keepdim) {
    op.meta(self, dim, keepdim);
    c10::SmallVector<int64_t, 1> dims;
    if constexpr (std::is_same_v<Dim, int64_t>) {
      dims.push_back(dim);
    } else if (dim) {
      dims.push_back(*dim);
    }
    reduce(Row, self, at::IntArrayRef(dims), keepdim, op.outputs[0], self.scalar_type(), op.outputs[1]);
  }
};

template <const ReduceRow& Row>
struct Whole {
  static at::Tensor functional(const at::Tensor& self) {
    TORCH_CHECK(self.numel() > 0, Row.name,
                "(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the "
                "'dim' argument.");
    const at::Tensor result = empty_tensor({}, {}, self.scalar_type());
    reduce(Row, self, {}, false, result, self.scalar_type());
    return result;
  }
  static at::Tensor& out(const at::Tensor& self, at::Tensor& out) {
    TORCH_CHECK(self.device() == out.device());
    TORCH_CHECK(canCast(self.scalar_type(), out.scalar_type()));
    at::native::resize_output(out, {});
    reduce(Row, self, {}, false, out, self.scalar_type());
    return out;
  }
};

using MaxDim = Forms<Pair<at::meta::structured_max_dim, kMaxDim, int64_t>>;
using MinDim = Forms<Pair<at::meta::structured_min_dim, kMinDim, int64_t>>;
using Aminmax = Forms<Pair<at::meta::structured_aminmax, kAminmax, std::optional<int64_t>>>;

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  native<&Whole<kMaxAll>::functional>(library, "max");
  native<&Whole<kMaxAll>::out>(library, "max.unary_out");
  native<&Whole<kMinAll>::functional>(library, "min");
  native<&Whole<kMinAll>::out>(library, "min.unary_out");
  native<&MaxDim::functional>(library, "max.dim");
  native<&MaxDim::out>(library, "max.dim_max");
  native<&MinDim::functional>(library, "min.dim");
  native<&MinDim::out>(library, "min.dim_min");
  native<&Aminmax::functional>(library, "aminmax");
  native<&Aminmax::out>(library, "aminmax.out");
}

}  // namespace
}  // namespace torch_webgpu
