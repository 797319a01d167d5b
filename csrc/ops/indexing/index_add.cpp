// Adding and reducing along a dimension by a vector of indices: index_add, index_reduce, embedding's backward.
#include <ATen/TensorUtils.h>
#include <ATen/native/ReductionType.h>
#include <ATen/ops/index_add_meta.h>
#include <ATen/ops/index_reduce_meta.h>
#include <ATen/ops/norm.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/library.h>

#include "families/accumulate.h"
#include "families/structured.h"
#include "ops/native.h"

namespace torch_webgpu {
namespace {

constexpr IndexedRow kIndexAdd = destination_row("index_add");
constexpr IndexedRow kIndexReduce = destination_row("index_reduce");
constexpr IndexedRow kEmbeddingBackward = destination_row("embedding_dense_backward");

// out[..., index[i], ...] is combined with source[..., i, ...].
void accumulate_along(const IndexedRow& row, Accumulate how, const at::Tensor& out, int64_t dim,
                      const at::Tensor& index, const at::Tensor& source, bool include_self = true) {
  if (index.numel() == 0 || source.numel() == 0) return;
  TORCH_CHECK_INDEX(at_least_1d(out).size(dim) > 0, "index out of range in self");
  if (out.numel() == 0) return;
  const at::Tensor front = at_least_1d(out).movedim(dim, 0), work = front.contiguous();
  const at::Tensor values = at_least_1d(source).movedim(dim, 0).contiguous(), places = at_least_1d(index);
  Destinations destinations{{}, work.size(0)};
  destination_keys(row, destinations, places.sizes(), {0}).index(places, places.strides(), work.size(0), 1, dim).run();
  accumulate(how, work, values, std::move(destinations), work.numel() / work.size(0), include_self);
  if (!work.is_same(front)) front.copy_(work);
}

void index_add(const at::Tensor& self, const at::Tensor& out, int64_t dim, const at::Tensor& index,
               const at::Tensor& source, const at::Scalar& alpha) {
  if (!self.is_same(out)) out.copy_(self);
  if (index.numel() == 0) return;
  check_fits(out.scalar_type(), alpha);
  const bool scaled = alpha.isFloatingPoint() ? alpha.toDouble() != 1 : alpha.toLong() != 1;
  accumulate_along(kIndexAdd, Accumulate::sum, out, dim, index, scaled ? source.mul(alpha) : source);
}

void index_reduce(const at::Tensor& self, const at::Tensor& out, int64_t dim, const at::Tensor& index,
                  const at::Tensor& source, std::string_view reduce, bool include_self) {
  if (!self.is_same(out)) out.copy_(self);
  if (index.numel() == 0) return;
  const auto reduction = at::native::get_operator_enum(reduce, /*use_new_options=*/true);
  using Type = at::native::ReductionType;
  const Accumulate how = reduction == Type::PROD  ? Accumulate::product
                         : reduction == Type::MAX ? Accumulate::maximum
                         : reduction == Type::MIN ? Accumulate::minimum
                                                  : Accumulate::sum;
  accumulate_along(kIndexReduce, how, out, dim, index, source, include_self);
  if (reduction != Type::MEAN) return;
  at::Tensor count = include_self ? at::ones_like(out) : at::zeros_like(out);
  accumulate_along(kIndexReduce, Accumulate::sum, count, dim, index, at::ones_like(source));
  count.masked_fill_(count.eq(0), 1);
  if (at::isFloatingType(out.scalar_type())) {
    out.div_(count);
  } else {
    out.div_(count, "floor");
  }
}

template <class Meta, auto Apply, class Signature = decltype(&Meta::meta)>
struct Along;
template <class Meta, auto Apply, class Result, class Base, class... Rest>
struct Along<Meta, Apply, Result (Base::*)(const at::Tensor&, int64_t, const at::Tensor&, const at::Tensor&, Rest...)> {
  static void run(Structured<Meta>& op, const at::Tensor& self, int64_t dim, const at::Tensor& index,
                  const at::Tensor& source, Rest... rest) {
    const int64_t wrapped = op.meta(self, dim, index, source, rest...).dim;
    Apply(self, op.outputs[0], wrapped, index, source, rest...);
  }
};

at::Tensor embedding_dense_backward(const at::Tensor& grad, const at::Tensor& indices, int64_t rows,
                                    int64_t padding_index, bool scale_by_frequency) {
  at::checkScalarTypes("embedding_backward", at::TensorArg(indices, "indices", 2), {at::kLong, at::kInt});
  const int64_t columns = grad.size(-1);
  at::Tensor result = at::zeros({rows, columns}, grad.options());
  if (indices.numel() == 0 || result.numel() == 0) return result;
  const at::Tensor places = indices.reshape(-1);
  Destinations destinations{{}, rows};
  destination_keys(kEmbeddingBackward, destinations, places.sizes(), {0}, padding_index)
      .index(places, places.strides(), rows, 1, 0)
      .run();
  accumulate(scale_by_frequency ? Accumulate::mean : Accumulate::sum, result, grad.contiguous(),
             std::move(destinations), columns);
  return result;
}

// Rows that are looked up and have a norm above max_norm are scaled down to it. An index that occurs twice writes the
// same values twice.
at::Tensor& embedding_renorm_(at::Tensor& self, const at::Tensor& indices, double max_norm, double norm_type) {
  at::checkDim("embedding_renorm_", at::TensorArg(self, "self", 1), 2);
  at::checkScalarTypes("embedding_renorm_", at::TensorArg(indices, "indices", 2), {at::kLong, at::kInt});
  const at::Tensor places = indices.reshape(-1).to(at::kLong);
  if (places.numel() == 0) return self;
  const at::Tensor rows = self.index_select(0, places);
  const at::Tensor norms = at::norm(rows, norm_type, 1, /*keepdim=*/true);
  const at::Tensor scale = norms.add(1e-7).reciprocal().mul(max_norm);
  return self.index_copy_(0, places, at::where(norms.gt(max_norm), rows.mul(scale), rows));
}

using IndexAdd = Forms<Along<at::meta::structured_index_add, &index_add>>;
using IndexReduce = Forms<Along<at::meta::structured_index_reduce, &index_reduce>>;

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  register_forms<IndexAdd>(library, "index_add", "", "out");
  register_forms<IndexReduce>(library, "index_reduce", "", "out");
  native<&embedding_dense_backward>(library, "embedding_dense_backward");
  native<&embedding_renorm_>(library, "embedding_renorm_");
}

}  // namespace
}  // namespace torch_webgpu
