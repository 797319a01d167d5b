// Distinct elements and distinct slices: sorted, marked where they change, numbered by a scan.
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <utility>

#include "families/program.h"
#include "families/tensor.h"
#include "ops/native.h"
#include "ops/sorting/scan.h"
#include "ops/sorting/sort.h"

namespace torch_webgpu {
namespace {

// NaN differs from itself, and is greater than all.
#define ROWS                                                \
  "const ORDERED = VARIANT == 1u;\n"                        \
  "fn different(a: T, b: T) -> bool { return ne(a, b); }\n" \
  "fn less(a: T, b: T) -> bool { return lt(a, b) || (!is_nan(a) && is_nan(b)); }\n"

constexpr Program kMarks = make_program("unique", "unique_marks", "T:input u:order u:marks!", "width", ROWS);
constexpr Program kEmit =
    make_program("unique", "unique_emit", "T:input u:order u:groups T:values! i:inverse! u:starts!", "width", ROWS);
constexpr Program kCount = make_program("unique", "unique_count", "u:starts i:counts!", "rows");
constexpr Program kSortRows = make_program("unique", "sort_rows", "T:input u:order u:moved!", "width run_length", ROWS);

using Triple = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

struct Groups {
  at::Tensor values;   // [groups, width]
  at::Tensor inverse;  // of each row its group
  at::Tensor counts;
};

// Groups of equal neighbours among the rows of contiguous [rows, width], in `order` where it is defined.
Groups group_rows(const at::Tensor& rows, const at::Tensor& order) {
  const int64_t count = rows.size(0), width = rows.size(1);
  const at::ScalarType dtype = rows.scalar_type();
  const uint32_t ordered = order.defined() ? 1 : 0;
  const at::Tensor marks = empty_tensor({count}, {}, at::kInt);
  run(kMarks, dtype, {count, width}, {rows, order, marks}, {width}, ordered);
  const at::Tensor numbers = running_counts(marks);
  const int64_t groups = numbers[count - 1].item<int32_t>();
  const at::Tensor values = empty_tensor({groups, width}, {}, word_dtype(dtype));
  const at::Tensor starts = empty_tensor({groups}, {}, at::kInt);
  Groups result;
  result.inverse = empty_tensor({count}, {}, at::kLong);
  result.counts = empty_tensor({groups}, {}, at::kLong);
  run(kEmit, dtype, {count, width}, {rows, order, numbers, values, result.inverse, starts}, {width}, ordered);
  run(kCount, at::kInt, {groups}, {starts, result.counts}, {count});
  result.values = values.to(dtype);
  return result;
}

at::Tensor sorted_rows(const at::Tensor& rows) {
  const int64_t count = rows.size(0), width = rows.size(1);
  if (width == 1) return sorted_order(rows, Lines(rows, 0), false);
  at::Tensor order = at::arange(count, rows.options().dtype(at::kInt)), moved = empty_tensor({count}, {}, at::kInt);
  for (int64_t length = 1; length < count; length *= 2) {
    run(kSortRows, rows.scalar_type(), {count, width}, {rows, order, moved}, {width, length});
    std::swap(order, moved);
  }
  return order;
}

at::Tensor no_indices() { return empty_tensor({0}, {}, at::kLong); }

Triple unique_elements(const at::Tensor& self, bool sorts, bool return_inverse, bool return_counts) {
  if (self.numel() == 0) {
    return {empty_tensor({0}, {}, self.scalar_type()),
            return_inverse ? empty_tensor(self.sizes(), {}, at::kLong) : no_indices(), no_indices()};
  }
  const at::Tensor rows = self.contiguous().view({-1, 1});
  const Groups groups = group_rows(rows, sorts ? sorted_rows(rows) : at::Tensor());
  return {groups.values.view(-1), return_inverse ? groups.inverse.view(self.sizes()) : no_indices(),
          return_counts ? groups.counts : no_indices()};
}

Triple unique_slices(const at::Tensor& self, int64_t dim, bool sorts) {
  dim = at::maybe_wrap_dim(dim, self.dim());
  auto sizes = self.sizes().vec();
  const auto zeros = std::count(sizes.begin(), sizes.end(), 0);
  if (self.size(dim) == 0) {
    TORCH_CHECK(zeros == 1, "Number of zero sized dimensions is more than one, so unique cannot be applied ");
    return {empty_tensor(sizes, {}, self.scalar_type()), no_indices(), no_indices()};
  }
  TORCH_CHECK(zeros == 0, "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied");
  const at::Tensor moved = self.moveaxis(dim, 0).contiguous(), rows = moved.view({moved.size(0), -1});
  const Groups groups = group_rows(rows, sorts ? sorted_rows(rows) : at::Tensor());
  auto shape = moved.sizes().vec();
  shape[0] = groups.values.size(0);
  return {groups.values.view(shape).moveaxis(0, dim), groups.inverse, groups.counts};
}

Triple unique2(const at::Tensor& self, bool /*sorted*/, bool return_inverse, bool return_counts) {
  return unique_elements(self, true, return_inverse, return_counts);
}

std::tuple<at::Tensor, at::Tensor> unique(const at::Tensor& self, bool /*sorted*/, bool return_inverse) {
  auto [values, inverse, counts] = unique_elements(self, true, return_inverse, false);
  return {values, inverse};
}

Triple unique_consecutive(const at::Tensor& self, bool return_inverse, bool return_counts, std::optional<int64_t> dim) {
  if (!dim || (self.dim() <= 1 && *dim == 0)) return unique_elements(self, false, return_inverse, return_counts);
  return unique_slices(self, *dim, false);
}

Triple unique_dim(const at::Tensor& self, int64_t dim, bool /*sorted*/, bool, bool) {
  return unique_slices(self, dim, true);
}

Triple unique_dim_consecutive(const at::Tensor& self, int64_t dim, bool, bool) {
  return unique_slices(self, dim, false);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  native<&unique>(library, "_unique");
  native<&unique2>(library, "_unique2");
  native<&unique_consecutive>(library, "unique_consecutive");
  native<&unique_dim>(library, "unique_dim");
  native<&unique_dim_consecutive>(library, "unique_dim_consecutive");
}

}  // namespace
}  // namespace torch_webgpu
