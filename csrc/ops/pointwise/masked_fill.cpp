// masked_fill_: one value wherever a mask says so.
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>

#include "families/number.h"
#include "ops/pointwise/table.h"

namespace torch_webgpu {
namespace {

constexpr PointwiseRow kNumber = make_row("masked_fill_", "select(b, s0, a)", PointwiseRow::first_is_bool);
constexpr PointwiseRow kTensor =
    make_row("masked_fill_", "select(b, c, a)", PointwiseRow::first_is_bool | PointwiseRow::stored);

void check(const at::Tensor& self, const at::Tensor& mask) {
  TORCH_CHECK(mask.dtype() == at::kBool, "masked_fill_ only supports boolean masks, but got mask with dtype ",
              mask.dtype());
  if (at::has_internal_overlap(self) == at::MemOverlap::Yes) {
    TORCH_WARN(
        "Use of masked_fill_ on expanded tensors is deprecated. Please clone() the tensor before performing this "
        "operation. This also applies to advanced indexing e.g. tensor[mask] = scalar");
  }
  at::assert_no_partial_overlap(self, mask);
}

at::TensorIteratorConfig& configure(at::TensorIteratorConfig& config, const at::Tensor& self, const at::Tensor& mask) {
  return config.set_check_mem_overlap(false)
      .check_all_same_dtype(false)
      .resize_outputs(false)
      .allow_cpu_scalars(true)
      .add_output(self)
      .add_const_input(mask)
      .add_const_input(self);
}

at::Tensor& fill_number(at::Tensor& self, const at::Tensor& mask, const at::Scalar& value) {
  check(self, mask);
  at::TensorIteratorConfig config;
  auto iterator = configure(config, self, mask).build();
  if (!dtype_of(self.scalar_type())) {
    const at::Scalar bits = bits_of(value, self.scalar_type());
    elementwise_bits(iterator, kNumber, {&bits});
    return self;
  }
  check_fits(self.scalar_type(), value);
  elementwise(iterator, kNumber, self.scalar_type(), {&value});
  return self;
}

at::Tensor& fill_tensor(at::Tensor& self, const at::Tensor& mask, const at::Tensor& value) {
  TORCH_CHECK(value.dim() == 0, "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
              value.dim(), " dimension(s).");
  TORCH_CHECK(self.is_complex() || !value.is_complex(), "value cannot be converted to type ",
              toString(self.scalar_type()), " without overflow");
  if (value.is_cpu()) return fill_number(self, mask, value.item());
  if (value.scalar_type() == self.scalar_type()) {
    if (const auto number = known_number(value)) return fill_number(self, mask, *number);
  }
  check(self, mask);
  at::TensorIteratorConfig config;
  auto iterator = configure(config, self, mask).add_const_input(value).build();
  elementwise(iterator, kTensor, self.scalar_type());
  return self;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  native<&fill_number, kAny>(library, "masked_fill_.Scalar");
  native<&fill_tensor, kAny>(library, "masked_fill_.Tensor");
}

}  // namespace
}  // namespace torch_webgpu
