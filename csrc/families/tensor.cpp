#include "families/tensor.h"

#include <ATen/EmptyTensor.h>
#include <c10/util/accumulate.h>

namespace torch_webgpu {

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

void check_storable(at::ScalarType dtype) {
  TORCH_CHECK_TYPE(dtype != at::kDouble,
                   "webgpu: cannot hold a float64 tensor: WebGPU has no 64-bit floating point. Use float32 instead.");
  TORCH_CHECK_TYPE(
      dtype != at::kComplexDouble,
      "webgpu: cannot hold a complex128 tensor: WebGPU has no 64-bit floating point. Use complex64 instead.");
}

at::Tensor empty_tensor(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType dtype,
                        std::optional<at::MemoryFormat> format) {
  // Without elements nothing is held: PyTorch's batch_norm of an empty batch asks for such placeholders in float64.
  if (c10::multiply_integers(sizes) != 0) check_storable(dtype);
  if (strides.empty()) return at::Tensor(at::detail::empty_generic(sizes, allocator(), kKeys, dtype, format));
  return at::Tensor(at::detail::empty_strided_generic(sizes, strides, allocator(), kKeys, dtype));
}

std::optional<DType> dtype_of(at::ScalarType type) {
  switch (type) {
    case at::kFloat: return DType::f32;
    case at::kHalf: return DType::f16;
    case at::kBFloat16: return DType::bf16;
    case at::kLong: return DType::i64;
    case at::kInt: return DType::i32;
    case at::kShort: return DType::i16;
    case at::kChar: return DType::i8;
    case at::kByte: return DType::u8;
    case at::kBool: return DType::boolean;
    default: return std::nullopt;
  }
}

DType kernel_dtype(at::ScalarType dtype, const char* op) {
  const auto known = dtype_of(dtype);
  TORCH_CHECK_NOT_IMPLEMENTED(known, "\"", op, "\" not implemented for '", toString(dtype), "' on webgpu");
  return *known;
}

at::Scalar fitted(at::ScalarType dtype, const at::Scalar& value) {
  switch (dtype) {
    case at::kByte: return value.to<uint8_t>();
    case at::kChar: return value.to<int8_t>();
    case at::kShort: return value.to<int16_t>();
    case at::kInt: return value.to<int32_t>();
    case at::kLong: return value.to<int64_t>();
    case at::kHalf: return static_cast<float>(value.to<c10::Half>());
    case at::kBFloat16: return static_cast<float>(value.to<c10::BFloat16>());
    case at::kFloat: return value.to<float>();
    case at::kComplexFloat: return value.to<c10::complex<float>>();
    default: return value;
  }
}

}  // namespace torch_webgpu
