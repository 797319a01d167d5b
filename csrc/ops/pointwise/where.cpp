// where: a condition and two branches that may differ in dtype and shape.
#include <ATen/native/TypeProperties.h>
#include <ATen/ops/result_type.h>

#include "ops/pointwise/table.h"

namespace torch_webgpu {
namespace {

constexpr PointwiseRow kWhere =
    make_row("where", "select(c, b, a)", PointwiseRow::first_is_bool | PointwiseRow::stored);

at::Tensor& where_out(const at::Tensor& condition, const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  TORCH_CHECK(condition.scalar_type() == at::kBool || condition.scalar_type() == at::kByte,
              "where expected condition to be a boolean tensor, but got a tensor with dtype ", condition.scalar_type());
  const at::ScalarType dtype = at::result_type(self, other);
  if (out.defined()) {
    TORCH_CHECK(out.scalar_type() == dtype, "Expected out type to be ", dtype, " but got ", out.scalar_type());
  }
  // A number from the host takes the branch's dtype on its way to the device.
  const auto here = [&](const at::Tensor& branch) {
    return branch.dim() == 0 && branch.device() != condition.device() ? branch.to(condition.device(), dtype) : branch;
  };
  const at::Tensor yes = here(self), no = here(other);
  auto iterator = at::TensorIteratorConfig()
                      .check_all_same_dtype(false)
                      .add_output(out)
                      .add_const_input(condition)
                      .add_const_input(yes)
                      .add_const_input(no)
                      .declare_static_dtype(dtype)
                      .build();
  elementwise(iterator, kWhere, dtype);
  return out = iterator.output();
}

at::Tensor where(const at::Tensor& condition, const at::Tensor& self, const at::Tensor& other) {
  at::Tensor out;
  return where_out(condition, self, other, out);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  native<&where, kStored>(library, "where.self");
  native<&where_out, kStored>(library, "where.self_out");
}

}  // namespace
}  // namespace torch_webgpu
