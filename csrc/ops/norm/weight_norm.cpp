// weight_norm: a direction and its length, along the first or the last dimension, and its backward.
#include <ATen/TensorIterator.h>
#include <ATen/ops/div.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linalg_vector_norm.h>

#include <numeric>

#include "ops/native.h"
#include "ops/norm/statistics.h"
#include "ops/pointwise/table.h"

namespace torch_webgpu {
namespace {

using Two = std::tuple<at::Tensor, at::Tensor>;

constexpr PointwiseRow kScaled = make_row("_weight_norm_interface", "a * (b / c)", kFloats);
constexpr PointwiseRow kBackward =
    make_row("_weight_norm_interface_backward", "(c / d) * (a - b * (e / (d * d)))", kFloats);

c10::SmallVector<int64_t, 6> all_but(int64_t dim, int64_t rank) {
  c10::SmallVector<int64_t, 6> dims(rank);
  std::iota(dims.begin(), dims.end(), 0);
  dims.erase(dims.begin() + dim);
  return dims;
}

at::TensorIterator iterator_of(const at::Tensor& out, std::initializer_list<at::Tensor> inputs) {
  at::TensorIteratorConfig config;
  config.check_all_same_dtype(false).resize_outputs(false).add_output(out);
  for (const at::Tensor& input : inputs) config.add_owned_const_input(input);
  return config.build();
}

Two weight_norm(const at::Tensor& v, const at::Tensor& g, int64_t dim) {
  // The norms of bfloat16 weights are kept as float32.
  const at::ScalarType dtype = g.scalar_type() == at::kBFloat16 ? at::kFloat : g.scalar_type();
  const at::Tensor norms = empty_tensor(g.sizes(), g.strides(), dtype),
                   w = empty_tensor(v.sizes(), {}, v.scalar_type());
  const at::Tensor lengths = at::linalg_vector_norm(v, 2, all_but(dim, v.dim()), true, at::kFloat);
  norms.copy_(lengths.view(g.sizes()));
  auto iterator = iterator_of(w, {v, g, lengths});
  elementwise(iterator, kScaled, at::kFloat);
  return {w, norms};
}

Two weight_norm_backward(const at::Tensor& grad, const at::Tensor& v, const at::Tensor& g, const at::Tensor& norms,
                         int64_t dim) {
  TORCH_CHECK(v.is_contiguous(), "saved_v must be contiguous");
  TORCH_CHECK(g.is_contiguous(), "saved_g must be contiguous");
  TORCH_CHECK(norms.is_contiguous(), "saved_norm must be contiguous");
  const at::Tensor sums = distance_sums(grad, v, {}, {}, all_but(dim, v.dim()));
  const at::Tensor grad_v = at::empty_like(v, at::MemoryFormat::Contiguous);
  auto iterator = iterator_of(grad_v, {grad, v, g, norms, sums});
  elementwise(iterator, kBackward, at::kFloat);
  return {grad_v, at::div(sums, norms).to(g.scalar_type())};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  native<&weight_norm>(library, "_weight_norm_interface");
  native<&weight_norm_backward>(library, "_weight_norm_interface_backward");
}

}  // namespace
}  // namespace torch_webgpu
