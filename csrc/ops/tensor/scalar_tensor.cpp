// A number as a tensor without dimensions: nothing is written before a kernel reads it.
#include <ATen/EmptyTensor.h>
#include <ATen/ops/empty.h>

#include "families/number.h"
#include "families/tensor.h"
#include "ops/native.h"

namespace torch_webgpu {
namespace {

// A value beyond float16's range becomes an infinity, as on the CPU: attention masks are often set to -1e9.
at::Scalar rounded(at::ScalarType dtype, const at::Scalar& value) {
  if (value.isComplex()) return value;
  if (dtype == at::kHalf) return static_cast<float>(static_cast<c10::Half>(static_cast<float>(value.toDouble())));
  if (dtype == at::kBFloat16)
    return static_cast<float>(static_cast<c10::BFloat16>(static_cast<float>(value.toDouble())));
  return value;
}

// A tape does not see the deferred write, so the number is written at once while recording.
at::Tensor scalar_tensor(const at::Scalar& given, std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                         std::optional<at::Device> device, std::optional<bool> pin) {
  const at::ScalarType type = c10::dtype_or_default(dtype);
  const at::Scalar value = rounded(type, given);
  if (!stored_dtype(type) || runtime().stream.recording() || c10::layout_or_default(layout) != at::kStrided ||
      c10::pinned_memory_or_default(pin)) {
    return at::empty({}, type, layout, device, pin, std::nullopt).fill_(value);
  }
  if (device) check_ordinal(device->index());
  const Number number = number_of(value, type);
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
