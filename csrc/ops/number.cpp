#include "ops/number.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>

#include "ops/native.h"
#include "ops/tensor.h"

namespace torch_webgpu {

Number number_of(const at::Scalar& value, at::ScalarType dtype, const char* op) {
  check_fits(dtype, value);
  Number number;
  const auto put = [&](auto element) {
    std::memcpy(number.words, &element, sizeof(element));
    number.size_bytes = sizeof(element);
  };
  switch (dtype) {
    case at::kFloat: put(value.to<float>()); break;
    case at::kHalf: put(value.to<at::Half>()); break;
    case at::kBFloat16: put(value.to<at::BFloat16>()); break;
    case at::kLong: put(value.to<int64_t>()); break;
    case at::kInt: put(value.to<int32_t>()); break;
    case at::kShort: put(value.to<int16_t>()); break;
    case at::kChar: put(value.to<int8_t>()); break;
    case at::kByte: put(value.to<uint8_t>()); break;
    case at::kBool: put(value.to<bool>()); break;
    case at::kComplexFloat: put(value.to<c10::complex<float>>()); break;
    default: kernel_dtype(dtype, op);
  }
  return number;
}

std::optional<at::Scalar> known_number(const at::Tensor& tensor) {
  if (tensor.device().type() != kDeviceType || tensor.storage_offset() != 0 || tensor.is_neg() || tensor.is_conj())
    return std::nullopt;
  for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
    if (tensor.size(dim) != 1 && tensor.stride(dim) != 0) return std::nullopt;
  }
  const auto number = number_in(tensor.storage());
  if (!number || number->size_bytes != tensor.element_size()) return std::nullopt;
  const at::Tensor host = at::detail::empty_cpu({}, tensor.scalar_type());
  std::memcpy(host.mutable_data_ptr(), number->words, number->size_bytes);
  return host.item();
}

namespace {

// What a half cannot hold is an infinity, as on the CPU: masks of attention are set to -1e9.
at::Scalar rounded(at::ScalarType dtype, const at::Scalar& value) {
  if (value.isComplex()) return value;
  if (dtype == at::kHalf) return static_cast<float>(static_cast<c10::Half>(static_cast<float>(value.toDouble())));
  if (dtype == at::kBFloat16)
    return static_cast<float>(static_cast<c10::BFloat16>(static_cast<float>(value.toDouble())));
  return value;
}

// A tape would not see the number being written later.
at::Tensor scalar_tensor(const at::Scalar& given, std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                         std::optional<at::Device> device, std::optional<bool> pin) {
  const at::ScalarType type = c10::dtype_or_default(dtype);
  const at::Scalar value = rounded(type, given);
  const bool is_known = dtype_of(type) || type == at::kComplexFloat;
  if (!is_known || runtime().stream.recording() || c10::layout_or_default(layout) != at::kStrided ||
      c10::pinned_memory_or_default(pin)) {
    return at::empty({}, type, layout, device, pin, std::nullopt).fill_(value);
  }
  if (device) check_ordinal(device->index());
  const Number number = number_of(value, type, "scalar_tensor");
  c10::Storage storage(c10::Storage::use_byte_size_t(), number.size_bytes, allocate_number(number), allocator(),
                       /*resizable=*/true);
  at::Tensor result = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), c10::scalarTypeToTypeMeta(type));
  result.unsafeGetTensorImpl()->generic_set_sizes_contiguous(at::IntArrayRef());
  return result;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) { library.impl("scalar_tensor", &scalar_tensor); }

}  // namespace
}  // namespace torch_webgpu
