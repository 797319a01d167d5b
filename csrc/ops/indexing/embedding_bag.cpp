// embedding_bag: rows of a table, summed, averaged or maximised by bags of indices, and its backwards.
#include <ATen/TensorUtils.h>
#include <ATen/ops/_embedding_bag_sparse_backward.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/embedding_dense_backward.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include "families/indexed.h"
#include "ops/native.h"

namespace torch_webgpu {
namespace {

#define BAG "let bag = fold_bag(d1, d0, i1, i2, i3, i4);"
constexpr IndexedRow kBag{"_embedding_bag",
                          BAG
                          "if (x(5u) == MEAN && bag.count > 0u) { return bag.value / f32(bag.count); }"
                          "return bag.value;",
                          IndexedRow::checks,
                          3,
                          1,
                          "embedding_bag"};
constexpr IndexedRow kBagRow{"_embedding_bag", BAG "return vec2<u32>(bag.row, 0u);", IndexedRow::checks, 3, 1,
                             "embedding_bag"};
constexpr IndexedRow kBagSize{"_embedding_bag", BAG "return vec2<u32>(bag.count, 0u);", IndexedRow::checks, 3, 1,
                              "embedding_bag"};

enum Mode : int64_t { sum = 0, mean = 1, maximum = 2 };
using Four = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;
using MaybeTensor = std::optional<at::Tensor>;

at::Tensor value_of(const MaybeTensor& tensor) { return tensor.value_or(at::Tensor()); }

// The bag of each index.
at::Tensor bags_of(const at::Tensor& indices, const at::Tensor& offsets) {
  if (indices.numel() == 0) return empty_tensor({0}, {}, at::kLong);
  const at::Tensor places = at::arange(indices.numel(), offsets.options());
  return at::searchsorted(offsets.contiguous(), places, /*out_int32=*/false, /*right=*/true).sub(1);
}

Four embedding_bag(const at::Tensor& weight, const at::Tensor& given_indices, const at::Tensor& given_offsets,
                   bool /*scale_grad_by_freq*/, int64_t mode, bool /*sparse*/, const MaybeTensor& sample_weights,
                   bool include_last_offset, int64_t padding_index) {
  TORCH_CHECK(given_indices.dim() == 1 || given_indices.dim() == 2,
              "input has to be a 1D or 2D Tensor, but got Tensor of dimension ", given_indices.dim());
  if (given_indices.dim() == 1) {
    TORCH_CHECK(given_offsets.dim() == 1, "offsets has to be a 1D Tensor, but got Tensor of dimension ",
                given_offsets.dim());
  }
  TORCH_CHECK(weight.dim() == 2, "weight has to be a 2D Tensor, but got Tensor of dimension ", weight.dim());
  const at::ScalarType type = at::promoteTypes(given_offsets.scalar_type(), given_indices.scalar_type());
  const at::Tensor indices = given_indices.to(type).contiguous(), offsets = given_offsets.to(type).contiguous();
  at::checkScalarTypes("embedding_bag", at::TensorArg(indices, "indices", 1), {at::kLong, at::kInt});
  at::checkScalarTypes("embedding_bag", at::TensorArg(offsets, "offsets", 1), {at::kLong, at::kInt});
  at::checkScalarTypes("embedding_bag", at::TensorArg(weight, "weight", 1), {at::kHalf, at::kBFloat16, at::kFloat});
  const at::Tensor samples = value_of(sample_weights);
  if (samples.defined()) {
    TORCH_CHECK(mode == Mode::sum, "embedding_bag: per_sample_weights only supported with mode='sum'");
    TORCH_CHECK(samples.dim() == 1 && samples.numel() == indices.numel(),
                "embedding_bag: per_sample_weights must be a 1D tensor with as many values as there are indices");
    TORCH_CHECK(samples.scalar_type() == weight.scalar_type(), "expected scalar type ", weight.scalar_type(),
                " but found ", samples.scalar_type());
  }
  if (include_last_offset) {
    TORCH_CHECK(offsets.size(0) >= 1, "include_last_offset: number of offset should be at least 1");
  }
  const int64_t bags = offsets.size(0) - include_last_offset, columns = weight.size(1);
  at::Tensor output = empty_tensor({bags, columns}, {}, weight.scalar_type()),
             sizes = empty_tensor({bags}, {}, at::kLong),
             rows = empty_tensor({mode == Mode::maximum ? bags : 0, columns}, {}, at::kLong);
  const at::Tensor weights = samples.defined() ? samples.contiguous() : weight;
  const auto launch = [&](const IndexedRow& row, const at::Tensor& out, int64_t width) {
    Indexed launch(row, weight.scalar_type());
    launch.iterate({bags, width});
    const int64_t inner = width > 1 ? 1 : 0;
    if (&row == &kBag) {
      launch.operand(out, {width, inner});
    } else {
      launch.operand_bits(out, {width, inner});
    }
    launch.operand(weight, {0, 0})
        .operand(weights, {0, 0})
        .operand(indices, {0, 0})
        .operand(offsets, {0, 0})
        .extra(indices.numel())
        .extra(bags + include_last_offset)
        .extra(weight.size(0))
        .extra(weight.stride(0))
        .extra(weight.stride(1))
        .extra(mode)
        .extra(samples.defined())
        .extra(padding_index)
        .run();
  };
  launch(kBag, output, columns);
  launch(kBagSize, sizes, 1);
  if (mode == Mode::maximum) launch(kBagRow, rows, columns);
  const at::Tensor bounds = include_last_offset ? offsets.narrow(0, 0, bags) : offsets;
  return {output, bags_of(indices, bounds), sizes, rows};
}

at::Tensor dense_backward(const at::Tensor& grad, const at::Tensor& indices, const at::Tensor& bag_of,
                          const at::Tensor& sizes, const at::Tensor& rows, int64_t row_count, bool scale_grad_by_freq,
                          int64_t mode, const MaybeTensor& sample_weights, int64_t padding_index) {
  if (mode == Mode::maximum) {
    at::Tensor result = at::zeros({row_count, grad.size(1)}, grad.options());
    if (rows.numel() == 0 || row_count == 0) return result;
    return result.scatter_add_(0, rows, at::where(sizes.gt(0).unsqueeze(1), grad, at::zeros({}, grad.options())));
  }
  at::Tensor values = grad.index_select(0, bag_of);
  if (mode == Mode::mean) values = values.div(sizes.index_select(0, bag_of).clamp_min(1).unsqueeze(1));
  const at::Tensor samples = value_of(sample_weights);
  if (samples.defined()) values = values.mul(samples.unsqueeze(1));
  return at::embedding_dense_backward(values.to(grad.scalar_type()), indices, row_count, padding_index,
                                      scale_grad_by_freq);
}

at::Tensor backward(const at::Tensor& grad, const at::Tensor& indices, const at::Tensor& offsets,
                    const at::Tensor& given_bag_of, const at::Tensor& sizes, const at::Tensor& rows, int64_t row_count,
                    bool scale_grad_by_freq, int64_t mode, bool sparse, const MaybeTensor& sample_weights,
                    int64_t padding_index) {
  const at::Tensor bag_of = given_bag_of.numel() > 0 ? given_bag_of : bags_of(indices, offsets);
  if (sparse) {
    return at::_embedding_bag_sparse_backward(grad, indices, offsets, bag_of, sizes, row_count, scale_grad_by_freq,
                                              mode, sample_weights, padding_index);
  }
  return dense_backward(grad, indices, bag_of, sizes, rows, row_count, scale_grad_by_freq, mode, sample_weights,
                        padding_index);
}

at::Tensor sample_weights_backward(const at::Tensor& grad, const at::Tensor& weight, const at::Tensor& indices,
                                   const at::Tensor& offsets, const at::Tensor& given_bag_of, int64_t mode,
                                   int64_t padding_index) {
  TORCH_CHECK(mode == Mode::sum, "embedding_bag_backward: per_sample_weights only supported for mode='sum'");
  if (indices.numel() == 0) return at::zeros({0}, grad.options());
  const at::Tensor bag_of = given_bag_of.numel() > 0 ? given_bag_of : bags_of(indices, offsets);
  const at::Tensor dots = grad.index_select(0, bag_of).mul(weight.index_select(0, indices)).sum(1);
  return at::where(indices.eq(padding_index), at::zeros({}, grad.options()), dots);
}

// The same, without a gradient.
Four embedding_bag_forward_only(const at::Tensor& weight, const at::Tensor& indices, const at::Tensor& offsets,
                                bool scale_grad_by_freq, int64_t mode, bool sparse, const MaybeTensor& sample_weights,
                                bool include_last_offset, int64_t padding_index) {
  return embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, sample_weights, include_last_offset,
                       padding_index);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  native<&embedding_bag>(library, "_embedding_bag");
  native<&embedding_bag_forward_only>(library, "_embedding_bag_forward_only");
  native<&backward>(library, "_embedding_bag_backward");
  native<&dense_backward>(library, "_embedding_bag_dense_backward");
  native<&sample_weights_backward>(library, "_embedding_bag_per_sample_weights_backward");
}

}  // namespace
}  // namespace torch_webgpu
