// Reductions over segments of a dimension. PyTorch's own functions check, and call the stubs that are registered here.
#include <ATen/native/SegmentReduce.h>
#include <ATen/ops/_segment_reduce_backward_native.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/segment_reduce_native.h>
#include <torch/library.h>

#include <cstring>

#include "families/lines.h"
#include "families/program.h"
#include "families/tensor.h"
#include "ops/native.h"

namespace torch_webgpu {
namespace {

using at::native::ReductionType;
using Initial = std::optional<at::Scalar>;

constexpr Program kSegments =
    make_program("segment_reduce", "segment_reduce", "T:data u:offsets T:result! T:gradient T:output",
                 "length inner segments initial_bits");
constexpr uint32_t kBackward = 8, kHasInitial = 16;

uint32_t variant_of(ReductionType reduction, const Initial& initial) {
  const uint32_t given = initial ? kHasInitial : 0;
  switch (reduction) {
    case ReductionType::MAX: return given;
    case ReductionType::MEAN: return given | 1;
    case ReductionType::MIN: return given | 2;
    case ReductionType::SUM: return given | 3;
    default: return given | 4;
  }
}

int64_t bits_of(const Initial& initial) {
  const float value = initial ? static_cast<float>(initial->toDouble()) : 0.0f;
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

at::Tensor offsets_of(const at::Tensor& lengths) {
  auto sizes = lengths.sizes().vec();
  sizes.back() += 1;
  at::Tensor offsets = empty_tensor(sizes, {}, lengths.scalar_type());
  offsets.zero_();
  offsets.narrow(-1, 1, lengths.size(-1)).copy_(at::cumsum(lengths, -1));
  return offsets;
}

at::Tensor reduce(ReductionType reduction, const at::Tensor& data, const at::Tensor& offsets, int64_t axis,
                  const Initial& initial) {
  auto sizes = data.sizes().vec();
  const Lines lines(data, axis);
  const int64_t segments = sizes[axis] = offsets.size(axis) - 1;
  const at::Tensor result = empty_tensor(sizes, {}, word_dtype(data.scalar_type()));
  run(kSegments, at::kFloat, {result.numel(), lines.length / std::max<int64_t>(segments, 1) + 1},
      {data.contiguous(), offsets.to(at::kInt).contiguous(), result, {}, {}},
      {lines.length, lines.inner, segments, bits_of(initial)}, variant_of(reduction, initial));
  return result.to(data.scalar_type());
}

at::Tensor reduce_lengths(ReductionType reduction, const at::Tensor& data, const at::Tensor& lengths, int64_t axis,
                          const Initial& initial) {
  return reduce(reduction, data, offsets_of(lengths), axis, initial);
}

at::Tensor spread(const at::Tensor& grad, const at::Tensor& output, const at::Tensor& data, ReductionType reduction,
                  const at::Tensor& offsets, int64_t axis, const Initial& initial) {
  const Lines lines(data, axis);
  const int64_t segments = offsets.size(axis) - 1;
  at::Tensor result = empty_tensor(data.sizes(), {}, word_dtype(data.scalar_type()));
  result.zero_();
  run(kSegments, at::kFloat, {output.numel(), lines.length / std::max<int64_t>(segments, 1) + 1},
      {data.contiguous(), offsets.to(at::kInt).contiguous(), result, grad.contiguous(), output.contiguous()},
      {lines.length, lines.inner, segments, bits_of(initial)}, variant_of(reduction, initial) | kBackward);
  return result.to(data.scalar_type());
}

at::Tensor spread_lengths(const at::Tensor& grad, const at::Tensor& output, const at::Tensor& data,
                          ReductionType reduction, const at::Tensor& lengths, int64_t axis, const Initial& initial) {
  return spread(grad, output, data, reduction, offsets_of(lengths), axis, initial);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  native<&at::native::segment_reduce_kernel>(library, "segment_reduce");
  native<&at::native::_segment_reduce_backward_kernel>(library, "_segment_reduce_backward");
}

}  // namespace
}  // namespace torch_webgpu

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_segment_reduce_lengths_stub, &torch_webgpu::reduce_lengths)
REGISTER_PRIVATEUSE1_DISPATCH(_segment_reduce_offsets_stub, &torch_webgpu::reduce)
REGISTER_PRIVATEUSE1_DISPATCH(_segment_reduce_lengths_backward_stub, &torch_webgpu::spread_lengths)
REGISTER_PRIVATEUSE1_DISPATCH(_segment_reduce_offsets_backward_stub, &torch_webgpu::spread)
}  // namespace at::native
