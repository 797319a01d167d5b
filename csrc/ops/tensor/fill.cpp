// Tensors filled with one value or a sequence: fill_, zero_, arange.
#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>

#include <cmath>

#include "families/launch.h"
#include "families/number.h"
#include "ops/pointwise/table.h"

namespace torch_webgpu {
namespace {

constexpr PointwiseRow kFill = make_row("fill", "s0");
constexpr PointwiseRow kZero = make_row("zero", "zero");
constexpr PointwiseRow kArange = make_row("arange", "add(s0, mul(from_index(index), s1))", PointwiseRow::has_index);

at::TensorIterator nullary(const at::Tensor& self) {
  return at::TensorIteratorConfig()
      .set_check_mem_overlap(false)  // one value everywhere: overlap does no harm
      .check_all_same_dtype(false)
      .add_output(self)
      .resize_outputs(false)
      .build();
}

at::Tensor& zero_(at::Tensor& self) {
  auto iterator = nullary(self);
  elementwise_bits(iterator, kZero);
  return self;
}

at::Tensor& fill_scalar_(at::Tensor& self, const at::Scalar& value) {
  const at::ScalarType dtype = self.scalar_type();
  // A single float16 or bfloat16 may become infinite, as on the CPU: that is how numbers become tensors.
  const bool lenient = self.numel() == 1 && at::isReducedFloatingType(dtype) && !value.isComplex();
  auto iterator = nullary(self);
  if (dtype_of(dtype)) {
    const at::Scalar fill = lenient ? at::Scalar(static_cast<float>(value.toDouble())) : fitted(dtype, value);
    elementwise(iterator, kFill, dtype, {&fill});
  } else {
    const at::Scalar bits = bits_of(value, dtype);
    elementwise_bits(iterator, kFill, {&bits});
  }
  return self;
}

at::Tensor& fill_tensor_(at::Tensor& self, const at::Tensor& value) {
  TORCH_CHECK(value.dim() == 0, "fill_ only supports 0-dimension value tensor but got tensor with ", value.dim(),
              " dimensions.");
  return self.copy_(value);
}

// Only int64 counts in integers; the other dtypes count in float64, as on the CPU.
int64_t arange_size(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step, at::ScalarType dtype) {
  const double from = start.toDouble(), to = end.toDouble(), by = step.toDouble();
  TORCH_CHECK(by > 0 || by < 0, "step must be nonzero");
  TORCH_CHECK(std::isfinite(from) && std::isfinite(to), "unsupported range: ", from, " -> ", to);
  TORCH_CHECK(by > 0 ? to >= from : to <= from, "upper bound and lower bound inconsistent with step sign");
  if (dtype != at::kLong) return static_cast<int64_t>(std::ceil((to - from) / by));
  const int64_t stride = step.to<int64_t>(), sign = (stride > 0) - (stride < 0);
  TORCH_CHECK_VALUE(stride != 0, "step must be nonzero");
  return (end.to<int64_t>() - start.to<int64_t>() + stride - sign) / stride;
}

at::Tensor& arange_out(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step, at::Tensor& out) {
  const bool integral = at::isIntegralType(out.scalar_type(), /*includeBool=*/true);
  const int64_t size = arange_size(start, end, step, out.scalar_type());
  if (out.numel() != size) {
    if (out.numel() > 0) {
      TORCH_WARN(
          "The number of elements in the out tensor of shape ", out.sizes(), " is ", out.numel(),
          " which does not match the computed number of elements ", size,
          ". Note that this may occur as a result of rounding error. The out tensor will be resized to a tensor of "
          "shape (",
          size, ",).");
    }
    out.resize_({size});
  }
  if (!dtype_of(out.scalar_type())) {  // from the host, which computes it once
    at::Tensor host = at::Tensor(at::detail::empty_cpu({0}, out.scalar_type()));
    out.copy_(at::arange_out(host, start, end, step).view(out.sizes()));
    return out;
  }
  const at::Tensor flat = out.is_contiguous() ? out.view(-1) : empty_tensor({size}, {}, out.scalar_type());
  // An index of 24 bits is exact in f32, and a piece fits one binding.
  const int64_t piece = std::min<int64_t>(int64_t{1} << 24, static_cast<int64_t>(max_binding_bytes() / 8));
  for (int64_t begin = 0; begin < size; begin += piece) {
    const at::Scalar first = integral ? at::Scalar(start.toLong() + begin * step.toLong())
                                      : at::Scalar(start.toDouble() + static_cast<double>(begin) * step.toDouble());
    auto iterator = nullary(flat.narrow(0, begin, std::min(piece, size - begin)));
    elementwise(iterator, kArange, out.scalar_type(), {&first, &step});
  }
  if (!out.is_contiguous()) out.copy_(flat.view(out.sizes()));
  return out;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  native<&zero_, kAny>(library, "zero_");
  native<&fill_scalar_, kAny>(library, "fill_.Scalar");
  library.impl("fill_.Tensor", &fill_tensor_);
  native<&arange_out, kAny>(library, "arange.start_out");
}

}  // namespace
}  // namespace torch_webgpu
