// Nested tensors, strided and jagged: one tensor holds the elements of all parts, beside a table of their sizes.
#include <ATen/TensorOperators.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/nested/NestedTensorUtils.h>
#include <ATen/ops/_nested_from_padded_native.h>
#include <ATen/ops/_nested_tensor_from_mask_native.h>
#include <ATen/ops/_nested_view_from_buffer_native.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/index.h>
#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/native_layer_norm_backward.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/where.h>
#include <torch/library.h>

#include <array>

#include "device/sparse_fallback.h"
#include "families/tensor.h"
#include "ops/native.h"

namespace torch_webgpu {
namespace {

// PyTorch's kernels for strided nested tensors of the CPU are written in ops of the tensor that holds the elements,
// which is on the device here, and read sizes that are on the host for every device. They serve as they are.
constexpr c10::DispatchKey kNestedOnHost = c10::DispatchKey::NestedTensorCPU;

void run_nested(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  op.redispatchBoxed(c10::DispatchKeySet(kNestedOnHost), stack);
}

void refuse_nested(const c10::OperatorHandle& op, torch::jit::Stack*) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, op.operator_name(), " is not implemented for nested tensors");
}

// Kernels that do read the elements themselves.
constexpr std::array kReadOnHost{"sum.dim_IntList", "_nested_sum_backward"};
constexpr std::array kNotHere{"_native_multi_head_attention",
                              "_transform_bias_rescale_qkv",
                              "_transformer_encoder_layer_fwd",
                              "_fused_sdp_choice",
                              "native_layer_norm",
                              "native_layer_norm_backward"};

// The elements as rows of the last dimension, which all parts have in common.
at::Tensor rows_of(const at::Tensor& nested, int64_t width) {
  const at::Tensor dense = nested.contiguous();
  return at::native::get_nested_tensor_impl(dense)->get_unsafe_storage_as_tensor().view({-1, width});
}
at::Tensor nested_like(const at::Tensor& rows, const at::Tensor& nested) {
  const at::Tensor& sizes = at::native::get_nested_tensor_impl(nested)->get_nested_sizes();
  return at::native::wrap_buffer(rows.reshape(-1), sizes);
}

using OptionalTensor = std::optional<at::Tensor>;
using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

Three layer_norm(const at::Tensor& input, at::IntArrayRef shape, const OptionalTensor& weight,
                 const OptionalTensor& bias, double epsilon) {
  TORCH_CHECK(shape.size() == 1, "layer_norm: of nested tensors the last dimension alone is normalized, not ", shape);
  auto [result, mean, deviation] = at::native_layer_norm(rows_of(input, shape[0]), shape, weight, bias, epsilon);
  return {nested_like(result, input), mean, deviation};
}

Three layer_norm_backward(const at::Tensor& grad, const at::Tensor& input, at::IntArrayRef shape,
                          const at::Tensor& mean, const at::Tensor& deviation, const OptionalTensor& weight,
                          const OptionalTensor& bias, std::array<bool, 3> mask) {
  auto [grad_input, grad_weight, grad_bias] = at::native_layer_norm_backward(
      rows_of(grad, shape[0]), rows_of(input, shape[0]), shape, mean, deviation, weight, bias, mask);
  return {mask[0] ? nested_like(grad_input, input) : grad_input, grad_weight, grad_bias};
}

template <size_t Count>
bool contains(const std::array<const char*, Count>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

TORCH_LIBRARY_IMPL(aten, NestedTensorPrivateUse1, library) {
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& op_name : dispatcher.getAllOpNames()) {
    if (op_name.getNamespace() != "aten") continue;
    const auto op = dispatcher.findOp(op_name);
    if (!op || !op->hasKernelForDispatchKey(kNestedOnHost)) continue;
    const std::string name = op_name.overload_name.empty() ? op_name.name : op_name.name + "." + op_name.overload_name;
    const std::string base = name.substr(name.find(':') + 2);
    if (contains(kNotHere, base)) continue;
    library.impl(base.c_str(), contains(kReadOnHost, base)
                                   ? torch::CppFunction::makeFromBoxedFunction<&run_sparse_on_cpu>()
                                   : torch::CppFunction::makeFromBoxedFunction<&run_nested>());
  }
  library.impl("native_layer_norm", &layer_norm);
  library.impl("native_layer_norm_backward", &layer_norm_backward);
}
TORCH_LIBRARY_IMPL(_, NestedTensorPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&refuse_nested>());
}

at::Tensor nested_from_padded(const at::Tensor& padded, const at::Tensor& sizes, bool fuse_transform) {
  return at::native::nested_from_padded_generic(padded, sizes, fuse_transform);
}

// Row `part` of the padded tensor holds the values from offsets[part] to offsets[part + 1].
at::Tensor jagged_to_padded(const at::Tensor& values, at::TensorList offsets, at::IntArrayRef max_lengths,
                            double padding) {
  TORCH_CHECK_NOT_IMPLEMENTED(offsets.size() == 1,
                              "_jagged_to_padded_dense_forward: one jagged dimension is implemented, not ",
                              offsets.size());
  const int64_t parts = offsets[0].size(0) - 1, most = max_lengths[0];
  c10::SmallVector<int64_t, 4> sizes{parts, most};
  sizes.append(values.sizes().begin() + 1, values.sizes().end());
  if (values.size(0) == 0) return at::full(sizes, padding, values.options());
  const at::Tensor begin = offsets[0].narrow(0, 0, parts).unsqueeze(1),
                   end = offsets[0].narrow(0, 1, parts).unsqueeze(1),
                   places = begin + at::arange(most, offsets[0].options());
  const at::Tensor found = at::index(values, {places.clamp(0, values.size(0) - 1)});
  at::Tensor inside = places < end;
  for (int64_t dim = 1; dim < values.dim(); ++dim) inside = inside.unsqueeze(-1);
  return at::where(inside, found, padding).to(values.scalar_type());
}

at::Tensor padded_to_jagged(const at::Tensor& dense, at::TensorList offsets, std::optional<int64_t> total) {
  TORCH_CHECK_NOT_IMPLEMENTED(offsets.size() == 1,
                              "_padded_dense_to_jagged_forward: one jagged dimension is implemented, not ",
                              offsets.size());
  const int64_t parts = offsets[0].size(0) - 1;
  const int64_t count = total ? *total : offsets[0].select(0, parts).item<int64_t>();
  const at::Tensor value = at::arange(count, offsets[0].options()),
                   part = at::searchsorted(offsets[0], value, /*out_int32=*/false, /*right=*/true) - 1;
  return at::index(dense, {part, value - at::index(offsets[0], {part})});
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  // Their tables of sizes are on the host.
  library.impl("_nested_from_padded", &nested_from_padded);
  library.impl("_nested_view_from_buffer", &at::native::_nested_view_from_buffer);
  native<&at::native::NestedTensor_nested_tensor_from_mask>(library, "_nested_tensor_from_mask");
  native<&jagged_to_padded>(library, "_jagged_to_padded_dense_forward");
  native<&padded_to_jagged>(library, "_padded_dense_to_jagged_forward");
}

}  // namespace
}  // namespace torch_webgpu
