// median, nanmedian and mode: an element of each row and its index.
#include "shader/selection.h"

#include <ATen/TensorUtils.h>
#include <ATen/native/ReduceOpsUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/sort.h>
#include <torch/library.h>

#include <algorithm>

#include "families/launch.h"
#include "families/windows.h"
#include "ops/native.h"

namespace torch_webgpu {
namespace {

using Pair = std::tuple<at::Tensor, at::Tensor>;

KernelSource print(const Launch& launch) {
  const auto spec = spec_of<SelectionSpec>(launch);
  return {label_selection(spec), print_selection(spec, target(), pages_of(launch))};
}

// Takes contiguous rows; both results are one-dimensional.
Pair select_rows(SelectionKind kind, const char* name, const at::Tensor& input, int64_t length) {
  const int64_t rows = input.numel() / length;
  const at::Tensor values = empty_tensor({rows}, {}, input.scalar_type()),
                   indices = empty_tensor({rows}, {}, at::kLong);
  SelectionSpec spec{};
  spec.kind = static_cast<uint8_t>(kind);
  spec.dtype = static_cast<uint8_t>(kernel_dtype(input.scalar_type(), name));
  Launch launch;
  Part parts[] = {part_of(values), part_of(indices), part_of(input)};
  bind_pages(name, launch, parts);
  const int64_t most = target().software ? std::clamp<int64_t>(rows * length / 1024, 1, 32) : 65535,
                chunk = (rows + most - 1) / most;
  launch.params[SelectionParams::kRows] = rows;
  launch.params[SelectionParams::kLength] = length;
  launch.params[SelectionParams::kChunk] = chunk;
  launch.params[SelectionParams::kInput] = offset_in(parts[2], input);
  launch.param_words = SelectionParams::kWords;
  launch.grid[0] = (rows + chunk - 1) / chunk;
  set_key(launch, Family::selection, spec);
  launch.print = &print;
  runtime().stream.dispatch(launch);
  return {values, indices};
}

// Counting equals takes the square of a row's length, so long rows are sorted first.
constexpr int64_t kLongRow = 4096;

Pair mode_of_rows(const at::Tensor& input, int64_t length) {
  if (length <= kLongRow) return select_rows(SelectionKind::mode, "mode", input, length);
  const auto [sorted, order] = at::sort(input.view({-1, length}), /*stable=*/true, 1, /*descending=*/false);
  auto [values, places] = select_rows(SelectionKind::mode_of_sorted, "mode", sorted.contiguous(), length);
  return {values, at::gather(order, 1, places.unsqueeze(1)).squeeze(1)};
}

// Runs `kind` over a dimension and puts the results where they belong.
void select(SelectionKind kind, const at::Tensor& self, int64_t dim, const at::Tensor& values,
            const at::Tensor& indices) {
  const bool mode = kind == SelectionKind::mode;
  if (values.numel() == 0) return;
  const at::Tensor input = self.dim() == 0 ? self.view({1}) : self.movedim(dim, -1).contiguous();
  const auto [found, at] =
      mode ? mode_of_rows(input, input.size(-1)) : select_rows(kind, "median", input, input.size(-1));
  values.copy_(found.view(values.sizes()));
  indices.copy_(at.view(indices.sizes()));
}

void check_median(const at::Tensor& self, const char* name) {
  TORCH_CHECK_NOT_IMPLEMENTED(self.scalar_type() != at::kBool && !self.is_complex(), "\"", name,
                              "\" not implemented for '", toString(self.scalar_type()), "'");
}

template <SelectionKind Kind>
struct Median {
  static std::tuple<at::Tensor&, at::Tensor&> out(const at::Tensor& self, int64_t dim, bool keepdim, at::Tensor& values,
                                                  at::Tensor& indices) {
    dim = at::maybe_wrap_dim(dim, self.dim());
    const int64_t size = self.dim() > 0 ? self.size(dim) : 1;
    at::native::zero_numel_check_dims(self, dim, "median()");
    TORCH_CHECK(size > 0, "median() cannot compute median for a dimension of size 0 because ",
                "the operation does not have an identity");
    at::checkDeviceType("median", {values, indices}, self.device().type());
    at::checkScalarType("median", {indices, "indices", 1}, at::kLong);
    at::checkSameType("median", {values, "values", 0}, {self, "self", 2});
    auto shape = self.sizes().vec();
    if (self.dim() > 0 && keepdim) shape[dim] = 1;
    if (self.dim() > 0 && !keepdim) shape.erase(shape.begin() + dim);
    at::native::resize_output(values, shape);
    at::native::resize_output(indices, shape);
    check_median(self, "median_out");
    select(Kind, self, dim, values, indices);
    return {values, indices};
  }
  static at::Tensor all(const at::Tensor& self) {
    if (self.numel() == 0) {
      return at::full({}, std::numeric_limits<float>::quiet_NaN(), self.options().dtype(at::kFloat))
          .to(self.scalar_type());
    }
    check_median(self, "median_cpu");
    return std::get<0>(select_rows(Kind, "median", self.contiguous(), self.numel())).view(at::IntArrayRef());
  }
};

Pair mode_along(const at::Tensor& self, int64_t dim, bool keepdim) {
  TORCH_CHECK(!self.is_complex(), "mode does not support complex");
  dim = at::maybe_wrap_dim(dim, self.dim());
  if (self.numel() == 0) {
    const auto sizes = at::native::get_zero_numel_tensor_size(self, dim, keepdim, "mode()");
    return {empty_tensor(sizes, {}, self.scalar_type()), empty_tensor(sizes, {}, at::kLong)};
  }
  auto shape = self.sizes().vec();
  if (self.dim() > 0 && keepdim) shape[dim] = 1;
  if (self.dim() > 0 && !keepdim) shape.erase(shape.begin() + dim);
  const at::Tensor values = empty_tensor(shape, {}, self.scalar_type()), indices = empty_tensor(shape, {}, at::kLong);
  select(SelectionKind::mode, self, dim, values, indices);
  return {values, indices};
}

std::tuple<at::Tensor&, at::Tensor&> mode_out(const at::Tensor& self, int64_t dim, bool keepdim, at::Tensor& values,
                                              at::Tensor& indices) {
  const auto [made, places] = mode_along(self, dim, keepdim);
  at::native::resize_output(values, made.sizes());
  at::native::resize_output(indices, places.sizes());
  values.copy_(made);
  indices.copy_(places);
  return std::forward_as_tuple(values, indices);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  native<&Median<SelectionKind::median>::all>(library, "median");
  native<&Median<SelectionKind::median>::out>(library, "median.dim_values");
  native<&Median<SelectionKind::nanmedian>::all>(library, "nanmedian");
  native<&Median<SelectionKind::nanmedian>::out>(library, "nanmedian.dim_values");
  native<&mode_along>(library, "mode");
  native<&mode_out>(library, "mode.values");
}

}  // namespace
}  // namespace torch_webgpu
