// Moving values: between host and device, between tensors of the device with any strides and dtypes, and single values.
#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/ops/_copy_from_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/imag.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/real.h>
#include <ATen/ops/view_as_real.h>

#include <cstring>
#include <vector>

#include "device/storage.h"
#include "families/number.h"
#include "families/pointwise.h"
#include "ops/pointwise/table.h"
#include "ops/tensor/transpose.h"

namespace torch_webgpu {
namespace {

constexpr PointwiseRow kCopy = make_row("copy", "a", PointwiseRow::stored);

uint64_t offset_bytes(const at::Tensor& tensor) {
  return static_cast<const char*>(tensor.const_data_ptr()) - buffer_of(tensor)->address;
}

at::TensorIterator copy_iterator(const at::Tensor& target, const at::Tensor& source) {
  return at::TensorIteratorConfig()
      .add_output(target)
      .add_const_input(source)
      .resize_outputs(false)
      .check_all_same_dtype(false)
      .check_all_same_device(false)
      .build();
}

// The dtype with the same values that stores without another cast.
at::ScalarType computed(at::ScalarType dtype) {
  switch (dtype) {
    case at::kHalf:
    case at::kBFloat16:
    case at::kFloat8_e4m3fn:
    case at::kFloat8_e4m3fnuz:
    case at::kFloat8_e5m2:
    case at::kFloat8_e5m2fnuz: return at::kFloat;
    case at::kByte:
    case at::kChar:
    case at::kShort:
    case at::kUInt16: return at::kInt;
    case at::kUInt32: return at::kLong;
    case at::kComplexHalf: return at::kComplexFloat;
    default: return dtype;
  }
}

void copy_on_device(const at::Tensor& source, const at::Tensor& target) {
  if (source.is_same(target)) return;
  if (const auto number = known_number(source); number && source.scalar_type() == target.scalar_type()) {
    target.fill_(*number);
    return;
  }
  auto iterator = copy_iterator(target, source);
  const at::ScalarType from = source.scalar_type(), to = target.scalar_type();
  if (from == to) {
    if (copy_transposed(iterator, target, source)) return;
    return elementwise_bits(iterator, kCopy);
  }
  if (stored_dtype(from) && stored_dtype(to)) {
    if (at::isComplexType(from) && !at::isComplexType(to) && to != at::kBool) {
      TORCH_WARN("Casting complex values to real discards the imaginary part");
    }
    // Converts once: from what the source computes as to what the target stores.
    return elementwise(iterator, kCopy, to == at::kBool ? at::kBool : computed(from));
  }
  target.copy_(source.to(at::kCPU).to(to));
}

// The bytes of a tensor whose elements fill a range without gaps.
void read_dense(const at::Tensor& source, void* host) {
  const uint64_t begin = offset_bytes(source), size = source.numel() * source.element_size();
  const uint64_t skipped = begin % 4;
  if (skipped == 0) return waiting([&] { runtime().stream.read(*buffer_of(source), begin, host, size); });
  std::vector<char> words(size + skipped);
  waiting([&] { runtime().stream.read(*buffer_of(source), begin - skipped, words.data(), words.size()); });
  std::memcpy(host, words.data() + skipped, size);
}

bool same_layout(const at::Tensor& a, const at::Tensor& b) {
  return a.is_non_overlapping_and_dense() && a.sizes() == b.sizes() && a.strides() == b.strides();
}

void copy_to_host(const at::Tensor& source, const at::Tensor& target) {
  at::Tensor dense = source.is_non_overlapping_and_dense() ? source : source.contiguous();
  const bool direct = dense.scalar_type() == target.scalar_type() && same_layout(dense, target) && !target.is_neg() &&
                      !target.is_conj();
  at::Tensor host =
      direct ? target : at::Tensor(at::detail::empty_strided_cpu(dense.sizes(), dense.strides(), dense.scalar_type()));
  read_dense(dense, host.mutable_data_ptr());
  if (!direct) target.copy_(host);
}

// An upload writes whole words: the last may reach into a neighbour unless the tensor ends where its storage ends.
bool can_write_directly(const at::Tensor& target, const at::Tensor& host) {
  if (!same_layout(target, host) || offset_bytes(target) % 4 != 0) return false;
  const uint64_t end = offset_bytes(target) + host.nbytes();
  return end % 4 == 0 || end == target.storage().nbytes();
}

void copy_from_host(const at::Tensor& source, const at::Tensor& target) {
  at::Tensor host = source.to(target.scalar_type()).expand(target.sizes());
  if (!same_layout(target, host)) {
    at::Tensor dense = at::Tensor(at::detail::empty_cpu(target.sizes(), target.scalar_type()));
    if (target.is_non_overlapping_and_dense()) dense = dense.as_strided(target.sizes(), target.strides());
    host = dense.copy_(host);
  }
  const at::Tensor staged =
      can_write_directly(target, host) ? target : empty_tensor(host.sizes(), host.strides(), host.scalar_type());
  runtime().stream.write(*buffer_of(staged), offset_bytes(staged), host.const_data_ptr(), host.nbytes());
  if (!staged.is_same(target)) copy_on_device(staged, target);
}

// Conjugate and negative views are flags on the tensor: the values are made here. On the device by hand, since
// resolve_conj() is a copy of its own.
at::Tensor resolved(const at::Tensor& tensor) {
  if (tensor.device().type() != kDeviceType) return tensor.resolve_conj().resolve_neg();
  at::Tensor plain =
      at::native::as_strided_tensorimpl(tensor, tensor.sizes(), tensor.strides(), tensor.storage_offset());
  plain._set_conj(false);
  plain._set_neg(false);
  at::Tensor values = plain.clone();
  if (tensor.is_conj()) at::view_as_real(values).select(-1, 1).neg_();
  if (tensor.is_neg()) (values.is_complex() ? at::view_as_real(values) : values).neg_();
  return values;
}

// Copying a tensor to itself does nothing, whatever its strides; PyTorch looks at that for its own devices only.
bool is_same_view(const at::Tensor& a, const at::Tensor& b) {
  return a.device() == b.device() && a.is_alias_of(b) && a.storage_offset() == b.storage_offset() &&
         a.sizes() == b.sizes() && a.strides() == b.strides() && a.scalar_type() == b.scalar_type() &&
         a.is_conj() == b.is_conj() && a.is_neg() == b.is_neg();
}

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& target, bool /*non_blocking*/) {
  const auto broadcast = at::infer_size_dimvector(target.sizes(), self.sizes());
  TORCH_CHECK(at::IntArrayRef(broadcast) == target.sizes(), "output with shape ", target.sizes(),
              " doesn't match the broadcast shape ", at::IntArrayRef(broadcast));
  if (target.numel() == 0 || is_same_view(self, target)) return target;
  if (target.device().type() == kDeviceType) own_memory(target);
  if (self.is_conj() || self.is_neg()) return copy_from(resolved(self), target, false);
  if (target.is_conj() || target.is_neg()) {
    // Written through the plain view of the same memory, with the flags turned into values.
    at::Tensor values = self.is_complex() && target.is_conj() ? self.conj().resolve_conj() : self;
    if (target.is_neg()) values = values.neg();
    at::Tensor plain =
        at::native::as_strided_tensorimpl(target, target.sizes(), target.strides(), target.storage_offset());
    plain._set_conj(false);
    plain._set_neg(false);
    copy_from(values, plain, false);
    return target;
  }
  const bool from_device = self.device().type() == kDeviceType, to_device = target.device().type() == kDeviceType;
  if (from_device && to_device) {
    copy_on_device(self, target);
  } else if (from_device && target.is_cpu()) {
    copy_to_host(self.sizes() == target.sizes() ? self : self.expand(target.sizes()), target);
  } else if (to_device && self.is_cpu()) {
    copy_from_host(self, target);
  } else if (from_device) {
    target.copy_(self.cpu());  // other devices are reached through the host
  } else {
    copy_from_host(self.cpu(), target);
  }
  return target;
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& target) {
  if (self.sizes() != target.sizes()) {
    // The CPU's kernel chose strides for what it resized.
    const size_t elements = at::detail::computeStorageNbytes(self.sizes(), self.strides(), /*itemsize=*/1);
    target.resize_({static_cast<int64_t>(elements)}).as_strided_(self.sizes(), self.strides());
  }
  return copy_from(self, target, false);
}

at::Scalar local_scalar_dense(const at::Tensor& self) {
  TORCH_CHECK(self.numel() > 0, "_local_scalar_dense: Empty tensor not supported");
  if (const auto number = known_number(self)) return *number;
  at::Tensor host = at::Tensor(at::detail::empty_cpu({}, self.scalar_type()));
  read_dense(self, host.mutable_data_ptr());
  return host.item();
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("_copy_from", &copy_from);
  library.impl("_copy_from_and_resize", &copy_from_and_resize);
  library.impl("_local_scalar_dense", &local_scalar_dense);
}

// Copies resolve these flags themselves; PyTorch's own way to resolve them is a copy.
TORCH_LIBRARY_IMPL(aten, Conjugate, library) {
  library.impl("_copy_from", torch::CppFunction::makeFallthrough());
  library.impl("_copy_from_and_resize", torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, Negative, library) {
  library.impl("_copy_from", torch::CppFunction::makeFallthrough());
  library.impl("_copy_from_and_resize", torch::CppFunction::makeFallthrough());
}

}  // namespace
}  // namespace torch_webgpu
