// Moving elements to places known beforehand: flip, roll, tril, triu, eye, triangles' indices, channel_shuffle,
// repeat_interleave, the backward of unfold, linspace.
#include <ATen/WrapDimUtilsMulti.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/_assert_async.h>
#include <ATen/ops/amin.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/logspace.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tril_meta.h>
#include <ATen/ops/triu_meta.h>
#include <ATen/ops/zeros.h>

#include "families/indexed.h"
#include "families/structured.h"
#include "ops/native.h"

namespace torch_webgpu {
namespace {

constexpr IndexedRow kFlip{"flip", "return load1(i1);", IndexedRow::raw | IndexedRow::merges | IndexedRow::runs};
constexpr IndexedRow kTril{"tril", "if (i32(d0) - i32(d1) <= bitcast<i32>(x(0u))) { return load1(i1); } return V();",
                           IndexedRow::raw};
constexpr IndexedRow kTriu{"triu", "if (i32(d0) - i32(d1) >= bitcast<i32>(x(0u))) { return load1(i1); } return V();",
                           IndexedRow::raw};
constexpr IndexedRow kTrilIndices{"tril_indices", "return triangle_index(d0, d1 == 1u, false);", IndexedRow::raw, 1, 0,
                                  "triangle"};
constexpr IndexedRow kTriuIndices{"triu_indices", "return triangle_index(d0, d1 == 1u, true);", IndexedRow::raw, 1, 0,
                                  "triangle"};
// d0 runs along the unfolded dimension. x: folds, step, size, strides of the gradient by fold and within one
constexpr IndexedRow kUnfoldBackward{"unfold_backward",
                                     "var sum = T(); var fold = 0u;"
                                     "if (d0 >= x(2u)) { fold = (d0 - x(2u)) / x(1u) + 1u; }"
                                     "while (fold < x(0u) && fold * x(1u) <= d0) {"
                                     "  sum = add(sum, load1(i1 + fold * x(3u) + (d0 - fold * x(1u)) * x(4u)));"
                                     "  fold += 1u;"
                                     "} return sum;"};

at::Tensor flip(const at::Tensor& self, at::IntArrayRef dims) {
  const auto flipped = at::dim_list_to_bitset(dims, self.dim());
  at::Tensor out = at::empty_like(self, at::MemoryFormat::Preserve);
  if (out.numel() == 0) return out;
  auto strides = self.strides().vec();
  int64_t offset = 0;
  for (int64_t dim = 0; dim < self.dim(); ++dim) {
    if (!dims.empty() && flipped[dim]) {
      offset += (self.size(dim) - 1) * strides[dim];
      strides[dim] = -strides[dim];
    }
  }
  Indexed(kFlip).iterate(self.sizes()).operand(out, out.strides()).operand(self, strides, offset).run();
  return out;
}

at::Tensor roll_along(const at::Tensor& self, at::IntArrayRef shifts, at::IntArrayRef dims) {
  if (dims.size() != 1 || shifts.size() != 1) {
    TORCH_CHECK(!shifts.empty(), "`shifts` required");
    if (dims.empty() && shifts.size() == 1) {
      return roll_along(self.contiguous().view(self.numel()), shifts[0], 0).view(self.sizes());
    }
    TORCH_CHECK(shifts.size() == dims.size(), "shifts and dimensions must align. shifts: ", shifts.size(),
                ", dims:", dims.size());
    const at::Tensor first = roll_along(self, shifts[0], dims[0]);
    return roll_along(first, shifts.slice(1), dims.slice(1));
  }
  if (self.numel() == 0) return self.clone(at::MemoryFormat::Preserve);
  const int64_t dim = dims[0], size = self.size(dim), rest = (size - shifts[0]) % size;
  const int64_t start = rest < 0 ? rest + size : rest;
  return at::cat({self.narrow(dim, start, size - start), self.narrow(dim, 0, start)}, dim);
}

template <class Meta, const IndexedRow& Row>
struct Triangle {
  static void run(Structured<Meta>& op, const at::Tensor& self, int64_t diagonal) {
    op.meta(self, diagonal);
    const at::Tensor& out = op.outputs[0];
    const int64_t limit = int64_t{1} << 30;
    Indexed(Row)
        .iterate(out.sizes())
        .operand(out, out.strides())
        .operand(self, self.strides())
        .extra(std::clamp(diagonal, -limit, limit))
        .run();
  }
};

at::Tensor& eye_m_out(int64_t n, int64_t m, at::Tensor& out) {
  TORCH_CHECK(n >= 0, "n must be greater or equal to 0, got ", n);
  TORCH_CHECK(m >= 0, "m must be greater or equal to 0, got ", m);
  out.resize_({n, m});
  out.zero_();
  out.diagonal().fill_(1);
  return out;
}
at::Tensor& eye_out(int64_t n, at::Tensor& out) { return eye_m_out(n, n, out); }

template <bool Upper>
at::Tensor triangle_indices(int64_t rows, int64_t columns, int64_t offset, std::optional<at::ScalarType> dtype,
                            std::optional<at::Layout> layout, std::optional<at::Device>, std::optional<bool>) {
  at::native::check_args(rows, columns, layout);
  const int64_t lower = at::native::get_tril_size(rows, columns, Upper ? offset - 1 : offset);
  const int64_t size = Upper ? rows * columns - lower : lower;
  const at::ScalarType type = c10::dtype_or_default(dtype);
  at::Tensor out = empty_tensor({2, size}, {}, at::kInt);
  const int64_t first = std::clamp<int64_t>(-offset, 0, rows);
  const int64_t full = Upper ? first : std::max(first, std::clamp<int64_t>(columns - 1 - offset, 0, rows));
  Indexed(Upper ? kTriuIndices : kTrilIndices)
      .iterate(out.sizes())
      .operand(out, out.strides())
      .extra(Upper ? std::clamp<int64_t>(columns - offset, 0, rows) : rows)  // those below have no elements
      .extra(columns)
      .extra(first)
      .extra(full)
      .extra(offset)
      .run();
  return out.to(type);
}

at::Tensor channel_shuffle(const at::Tensor& self, int64_t groups) {
  TORCH_CHECK(self.dim() > 2, "channel_shuffle expects input with > 2 dims, but got input with sizes ", self.sizes());
  const int64_t channels = self.size(1);
  TORCH_CHECK(groups > 0, "Number of groups to divide channels in must be positive.", " Value of groups:", groups);
  TORCH_CHECK(channels % groups == 0, "Number of channels must be divisible by groups. Got ", channels,
              " channels and ", groups, " groups.");
  if (self.numel() == 0) return self.alias();
  at::Tensor out = at::empty_like(self);
  auto sizes = self.sizes().vec();
  sizes[1] = groups;
  sizes.insert(sizes.begin() + 2, channels / groups);
  const at::Tensor source = self.contiguous().view(sizes).transpose(1, 2);
  out.copy_(source.reshape(self.sizes()));
  return out;
}

// The index of each element, repeated as often as its count says.
at::Tensor repeat_interleave(const at::Tensor& repeats, std::optional<int64_t> output_size) {
  TORCH_CHECK(repeats.dim() == 1, "repeat_interleave only accept 1D vector as repeat");
  TORCH_CHECK(repeats.scalar_type() == at::kLong || repeats.scalar_type() == at::kInt,
              "repeats has to be Long or Int tensor");
  if (repeats.numel() == 0) return at::empty_like(repeats, at::MemoryFormat::Contiguous);
  const at::Tensor ends = repeats.cumsum(0), least = at::amin(repeats), last = ends.select(0, -1);
  int64_t total = output_size.value_or(0);
  if (output_size) {  // nobody has to wait: the next readback raises what is wrong
    at::_assert_async(least.ge(0), "repeats can not be negative");
    at::_assert_async(last.eq(total), "allocated size does not match required size");
  } else {
    const at::Tensor known = at::stack({least.to(at::kLong), last.to(at::kLong)}).cpu();
    TORCH_CHECK(known[0].item<int64_t>() >= 0, "repeats can not be negative");
    total = known[1].item<int64_t>();
  }
  at::Tensor places = empty_tensor({total}, {}, at::kLong);
  at::arange_out(places, total);
  return at::searchsorted(ends, places, repeats.scalar_type() == at::kInt, /*right=*/true);
}

at::Tensor unfold_backward(const at::Tensor& grad, at::IntArrayRef sizes, int64_t dim, int64_t size, int64_t step) {
  at::Tensor out = at::zeros(sizes, grad.options());
  if (grad.numel() == 0) return out;
  if (out.dim() == 0) {
    out.add_(grad.reshape(out.sizes()));
    return out;
  }
  dim = at::maybe_wrap_dim(dim, out.dim());
  const at::Tensor target = out.movedim(dim, -1);
  c10::SmallVector<int64_t, 6> strides;
  for (int64_t d = 0; d < out.dim(); ++d) {
    if (d != dim) strides.push_back(grad.stride(d));
  }
  strides.push_back(0);
  Indexed(kUnfoldBackward, grad.scalar_type())
      .iterate(target.sizes())
      .operand(target, target.strides())
      .operand(grad, strides)
      .extra(grad.size(dim))
      .extra(step)
      .extra(size)
      .extra(grad.stride(dim))
      .extra(grad.stride(-1))
      .run();
  return out;
}

// Few values from a formula in double precision, which the device does not have.
at::Tensor& linspace_out(const at::Scalar& start, const at::Scalar& end, int64_t steps, at::Tensor& out) {
  TORCH_CHECK(steps >= 0, "number of steps must be non-negative");
  if (out.numel() != steps) out.resize_({steps});
  if (steps > 0) out.copy_(at::linspace(start, end, steps, at::TensorOptions(out.scalar_type())).view(out.sizes()));
  return out;
}
at::Tensor& logspace_out(const at::Scalar& start, const at::Scalar& end, int64_t steps, double base, at::Tensor& out) {
  TORCH_CHECK(steps >= 0, "number of steps must be non-negative");
  if (out.numel() != steps) out.resize_({steps});
  if (steps > 0) {
    out.copy_(at::logspace(start, end, steps, base, at::TensorOptions(out.scalar_type())).view(out.sizes()));
  }
  return out;
}

using Tril = Forms<Triangle<at::meta::structured_tril, kTril>>;
using Triu = Forms<Triangle<at::meta::structured_triu, kTriu>>;

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  native<&flip, kAny>(library, "flip");
  native<&roll_along, kAny>(library, "roll");
  register_forms<Tril, kAny>(library, "tril", "", "out");
  register_forms<Triu, kAny>(library, "triu", "", "out");
  native<&eye_out, kAny>(library, "eye.out");
  native<&eye_m_out, kAny>(library, "eye.m_out");
  native<&triangle_indices<false>>(library, "tril_indices");
  native<&triangle_indices<true>>(library, "triu_indices");
  native<&channel_shuffle, kAny>(library, "channel_shuffle");
  native<&repeat_interleave>(library, "repeat_interleave.Tensor");
  native<&unfold_backward>(library, "unfold_backward");
  native<&linspace_out, kAny>(library, "linspace.out");
  native<&logspace_out, kAny>(library, "logspace.out");
}

}  // namespace
}  // namespace torch_webgpu
