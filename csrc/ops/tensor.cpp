#include "ops/tensor.h"

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

DType kernel_dtype(at::ScalarType dtype, const char* op) {
  const auto known = dtype_of(dtype);
  TORCH_CHECK_NOT_IMPLEMENTED(known, "\"", op, "\" not implemented for '", toString(dtype), "' on webgpu");
  return *known;
}

void check_fits(at::ScalarType dtype, const at::Scalar& value) {
  switch (dtype) {
    case at::kByte: (void)value.to<uint8_t>(); return;
    case at::kChar: (void)value.to<int8_t>(); return;
    case at::kShort: (void)value.to<int16_t>(); return;
    case at::kInt: (void)value.to<int32_t>(); return;
    case at::kLong: (void)value.to<int64_t>(); return;
    case at::kHalf: (void)value.to<c10::Half>(); return;
    default: return;
  }
}

}  // namespace torch_webgpu
