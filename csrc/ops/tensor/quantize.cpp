// Tensors of qint8 and quint8, quantized per tensor: their numbers are the bytes of an int8 or uint8 tensor.
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/_copy_from.h>
#include <ATen/ops/_empty_affine_quantized_native.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/clone_native.h>
#include <ATen/ops/empty_like_native.h>
#include <ATen/ops/empty_quantized_native.h>
#include <ATen/ops/q_scale_native.h>
#include <ATen/ops/q_zero_point_native.h>
#include <ATen/ops/qscheme_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <ATen/quantized/QTensorImpl.h>
#include <ATen/quantized/Quantizer.h>

#include "families/launch.h"
#include "ops/pointwise/table.h"

namespace torch_webgpu {
namespace {

constexpr PointwiseRow kQuantize =
    make_row("quantize_per_tensor", "quantized(a, s0, s1, s2, s3)", PointwiseRow::none, "quantize");
constexpr PointwiseRow kDequantize = make_row("dequantize", "mul(sub(a, s1), s0)");

void check_dtype(at::ScalarType dtype) {
  TORCH_CHECK_NOT_IMPLEMENTED(dtype == at::kQInt8 || dtype == at::kQUInt8,
                              "webgpu: quantized tensors are qint8 or quint8, not ", toString(dtype));
}

// The bytes of a quantized tensor as int8 or uint8, in the same memory. A quantized tensor of the CPU has the same.
at::Tensor bytes_of(const at::Tensor& self) {
  check_dtype(self.scalar_type());
  const auto dtype = self.scalar_type() == at::kQInt8 ? at::kChar : at::kByte;
  const auto key = self.is_cpu() ? c10::DispatchKey::CPU : c10::DispatchKey::PrivateUse1;
  auto result = at::detail::make_tensor<c10::TensorImpl>(c10::TensorImpl::VIEW, c10::Storage(self.storage()),
                                                         c10::DispatchKeySet(key), c10::scalarTypeToTypeMeta(dtype));
  result.unsafeGetTensorImpl()->set_storage_offset(self.storage_offset());
  result.unsafeGetTensorImpl()->set_sizes_and_strides(self.sizes(), self.strides());
  return result;
}

at::TensorIterator conversion(const at::Tensor& out, const at::Tensor& input) {
  return at::TensorIteratorConfig()
      .add_owned_output(out)
      .add_owned_const_input(input)
      .resize_outputs(false)
      .check_all_same_dtype(false)
      .build();
}

at::Tensor quantize(const at::Tensor& self, double scale, int64_t zero_point, at::ScalarType dtype) {
  check_dtype(dtype);
  TORCH_CHECK(self.scalar_type() == at::kFloat, "Quantize only works on Float Tensor, got ", self.scalar_type());
  const int64_t low = dtype == at::kQInt8 ? -128 : 0, high = dtype == at::kQInt8 ? 127 : 255;
  TORCH_CHECK(zero_point >= low, "quantize_tensor_per_tensor_affine zero_point ", zero_point, " is below lower bound.");
  TORCH_CHECK(zero_point <= high, "quantize_tensor_per_tensor_affine zero_point ", zero_point,
              " is above upper bound.");
  const at::Tensor input = self.contiguous(self.suggest_memory_format());
  at::Tensor result =
      at::new_qtensor(self.sizes(), self.options().dtype(dtype).memory_format(self.suggest_memory_format()),
                      at::make_per_tensor_affine_quantizer(scale, zero_point, dtype));
  auto iterator = conversion(bytes_of(result), input);
  const at::Scalar inverse(1.0f / static_cast<float>(scale)), offset(zero_point), least(low), greatest(high);
  elementwise(iterator, kQuantize, at::kFloat, {&inverse, &offset, &least, &greatest});
  return result;
}

at::Tensor quantize_per_tensor_by_tensors(const at::Tensor& self, const at::Tensor& scale, const at::Tensor& zero_point,
                                          at::ScalarType dtype) {
  return quantize(self, scale.item<double>(), zero_point.item<int64_t>(), dtype);
}

at::Tensor to_float(const at::Tensor& self) {
  const at::Tensor bytes = bytes_of(self);
  at::Tensor result = at::Tensor(empty_tensor(self.sizes(), {}, at::kFloat, self.suggest_memory_format()));
  auto iterator = conversion(result, bytes);
  const at::Scalar scale(at::native::q_scale_quant(self)), zero_point(at::native::q_zero_point_quant(self));
  elementwise(iterator, kDequantize, at::kFloat, {&scale, &zero_point});
  return result;
}

at::Tensor dequantize_plain(const at::Tensor& self) { return self.to(at::kFloat); }

at::Tensor int_repr(const at::Tensor& self) { return bytes_of(self).clone(self.suggest_memory_format()); }

at::Tensor make_quantized(const at::Tensor& self, double scale, int64_t zero_point) {
  TORCH_CHECK(self.scalar_type() == at::kChar || self.scalar_type() == at::kByte,
              "webgpu: quantized tensors are made of int8 or uint8, not ", toString(self.scalar_type()));
  const auto dtype = self.scalar_type() == at::kChar ? at::kQInt8 : at::kQUInt8;
  at::Tensor result = at::new_qtensor(self.sizes(), self.options().dtype(dtype),
                                      at::make_per_tensor_affine_quantizer(scale, zero_point, dtype));
  bytes_of(result).copy_(self);
  return result;
}

at::Tensor flip(const at::Tensor& self, at::IntArrayRef dims) {
  at::Tensor result = at::native::quantized_clone(self, std::nullopt);
  bytes_of(result).copy_(bytes_of(self).flip(dims));
  return result;
}

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& target, bool non_blocking) {
  TORCH_CHECK(self.scalar_type() == target.scalar_type(), "webgpu: a copy between ", self.scalar_type(), " and ",
              target.scalar_type(), " is a quantization: use quantize_per_tensor or dequantize");
  at::_copy_from(bytes_of(self), bytes_of(target), non_blocking);
  at::get_qtensorimpl(target)->set_quantizer_(at::get_qtensorimpl(self)->quantizer());
  return target;
}

at::Scalar item_of(const at::Tensor& self) { return to_float(self).item(); }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("quantize_per_tensor", &quantize);
  library.impl("quantize_per_tensor.tensor_qparams", &quantize_per_tensor_by_tensors);
  library.impl("dequantize.self", &dequantize_plain);
  library.impl("_make_per_tensor_quantized_tensor", &make_quantized);
}

TORCH_LIBRARY_IMPL(aten, QuantizedPrivateUse1, library) {
  library.impl("dequantize.self", &to_float);
  library.impl("int_repr", &int_repr);
  library.impl("q_scale", &at::native::q_scale_quant);
  library.impl("q_zero_point", &at::native::q_zero_point_quant);
  library.impl("qscheme", &at::native::qscheme_quant);
  library.impl("_empty_affine_quantized", &at::native::empty_affine_quantized);
  library.impl("empty_quantized", &at::native::empty_quantized);
  library.impl("empty_like", &at::native::empty_like_quantized);
  library.impl("clone", &at::native::quantized_clone);
  library.impl("flip", &flip);
  library.impl("as_strided", &at::native::as_strided_qtensorimpl);
  library.impl("view", &at::native::view);
  library.impl("_reshape_alias", &at::native::_reshape_alias);
  library.impl("unfold", &at::native::unfold);
  library.impl("_copy_from", &copy_from);
  library.impl("_local_scalar_dense", &item_of);
}

}  // namespace
}  // namespace torch_webgpu
