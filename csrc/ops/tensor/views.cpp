// The base ops of a device: empty tensors, views, resizing, and storages set by hand.
#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <ATen/native/ResizeCommon.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>

#include "device/storage.h"
#include "families/tensor.h"

namespace torch_webgpu {
namespace {

void check_options(std::optional<at::Layout> layout, std::optional<at::Device> device, std::optional<bool> pin_memory) {
  if (device) check_ordinal(device->index());
  TORCH_CHECK(c10::layout_or_default(layout) == at::kStrided, "webgpu: only strided tensors live on the device, not ",
              c10::layout_or_default(layout));
  TORCH_CHECK(!c10::pinned_memory_or_default(pin_memory), "Only dense CPU tensors can be pinned");
}

// With torch.use_deterministic_algorithms(True) new memory holds NaN or the largest integer.
bool fills_new_memory() {
  const auto& context = at::globalContext();
  return context.deterministicAlgorithms() && context.deterministicFillUninitializedMemory();
}

at::Tensor filled(at::Tensor made) {
  if (fills_new_memory()) [[unlikely]]
    at::native::fill_empty_deterministic_(made);
  return made;
}

at::Tensor empty(at::IntArrayRef sizes, std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                 std::optional<at::Device> device, std::optional<bool> pin_memory,
                 std::optional<at::MemoryFormat> format) {
  check_options(layout, device, pin_memory);
  return filled(empty_tensor(sizes, {}, c10::dtype_or_default(dtype), format));
}

at::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides, std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout> layout, std::optional<at::Device> device,
                         std::optional<bool> pin_memory) {
  check_options(layout, device, pin_memory);
  if (sizes.empty()) return filled(empty_tensor({}, {}, c10::dtype_or_default(dtype)));
  return filled(empty_tensor(sizes, strides, c10::dtype_or_default(dtype)));
}

// Zeros that take no memory: what autograd makes of a gradient that is known to be none.
at::Tensor efficient_zeros(at::IntArrayRef sizes, std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                           std::optional<at::Device> device, std::optional<bool> pin_memory) {
  check_options(layout, device, pin_memory);
  static auto* nothing = new at::native::ZeroTensorAllocator(at::Device(kDeviceType, 0));
  constexpr c10::DispatchKeySet keys({c10::DispatchKey::PrivateUse1, c10::DispatchKey::ZeroTensor});
  return at::Tensor(at::detail::empty_generic(sizes, nothing, keys, c10::dtype_or_default(dtype), std::nullopt));
}

void grow_to_fit(const at::Tensor& tensor) {
  const size_t needed = at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.element_size(),
                                                         tensor.storage_offset());
  if (tensor.numel() > 0 && needed > tensor.storage().nbytes()) {
    resize_storage(*tensor.storage().unsafeGetStorageImpl(), needed);
  }
}

const at::Tensor& resize_(const at::Tensor& self, at::IntArrayRef sizes, std::optional<at::MemoryFormat> format) {
  if (self.sizes() != sizes) self.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
  if (format) self.unsafeGetTensorImpl()->empty_tensor_restride(*format);
  const auto bytes_before = static_cast<int64_t>(self.storage().nbytes());
  grow_to_fit(self);
  if (fills_new_memory()) [[unlikely]]
    at::native::fill_resize_deterministic_(self, bytes_before);
  return self;
}

at::Tensor& set_storage(at::Tensor& self, at::Storage source, int64_t offset, at::IntArrayRef sizes,
                        at::IntArrayRef strides) {
  at::native::checkSetStorage(self, std::move(source), offset, sizes, strides);
  // Refuses negative strides, which at an offset may seem to fit.
  if (strides.data()) (void)at::detail::computeStorageNbytes(sizes, strides, self.element_size());
  self.unsafeGetTensorImpl()->set_storage_offset(offset);
  if (strides.data() == nullptr) {
    self.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
  } else {
    self.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  }
  grow_to_fit(self);
  return self;
}

at::Tensor& set_whole_storage(at::Tensor& self, at::Storage source) {
  const auto size = static_cast<int64_t>(source.nbytes() / self.element_size());
  return set_storage(self, std::move(source), 0, {size}, {});
}

at::Tensor& set_tensor(at::Tensor& self, const at::Tensor& source) {
  if (self.unsafeGetTensorImpl() == source.unsafeGetTensorImpl()) return self;
  return set_storage(self, source.storage(), source.storage_offset(), source.sizes(), source.strides());
}

at::Tensor& set_nothing(at::Tensor& self) {
  return set_storage(self, c10::Storage(c10::Storage::use_byte_size_t(), 0, allocator(), true), 0, {0}, {});
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("_efficientzerotensor", &efficient_zeros);
  library.impl("as_strided", &at::native::as_strided_tensorimpl);
  library.impl("view", &at::native::view);
  library.impl("_reshape_alias", &at::native::_reshape_alias);
  library.impl("unfold", &at::native::unfold);
  library.impl("view_as_real", &at::native::view_as_real);
  library.impl("view_as_complex", &at::native::view_as_complex);
  library.impl("resize_", &resize_);
  library.impl("record_stream", [](at::Tensor&, at::Stream) {});  // one stream runs everything in order
  library.impl("set_.source_Storage", &set_whole_storage);
  library.impl("set_.source_Storage_storage_offset", &set_storage);
  library.impl("set_.source_Tensor", &set_tensor);
  library.impl("set_", &set_nothing);
  // Moving a module keeps each parameter's identity, so tied weights stay tied and optimizers keep their tensors.
  library.impl("_has_compatible_shallow_copy_type", [](const at::Tensor&, const at::Tensor&) { return true; });
}

}  // namespace
}  // namespace torch_webgpu
