// Reading by index tensors: index, index_select, gather, take.
#include <ATen/MemoryOverlap.h>
#include <ATen/ops/gather_meta.h>
#include <ATen/ops/index_meta.h>

#include "families/indexed.h"
#include "families/structured.h"
#include "ops/native.h"

namespace torch_webgpu {
namespace {

#define MOVES "if (!valid) { return V(); } return load1(at);"
constexpr uint8_t kMoves = IndexedRow::raw | IndexedRow::merges | IndexedRow::runs;
constexpr IndexedRow kIndex{"index", MOVES, kMoves | IndexedRow::wraps};
constexpr IndexedRow kTake{"take", MOVES, kMoves | IndexedRow::wraps};
constexpr IndexedRow kGather{"gather", MOVES, kMoves};
constexpr IndexedRow kIndexSelect{"index_select", MOVES, kMoves};

using Indices = c10::List<std::optional<at::Tensor>>;

struct Index {
  using Op = Structured<at::meta::structured_index_Tensor>;

  static void run(Op& op, const at::Tensor& self, const Indices& indices) {
    TORCH_CHECK_INDEX(static_cast<int64_t>(indices.size()) <= self.dim(), "too many indices for tensor of dimension ",
                      self.dim(), " (got ", indices.size(), ")");
    const auto found = op.meta(self, at::IOptTensorListRef(indices));
    if (op.numel() == 0) return;
    Indexed launch(kIndex);
    launch.iterate(op);
    for (size_t i = 0; i < found.sizes.size(); ++i) {
      launch.index(found.sizes[i], found.strides[i] / self.element_size(), static_cast<int64_t>(i));
    }
    launch.run();
  }
};

// out[..., i, ...] = self[..., index, ...] along `dim`; the index has the output's strides or is a vector.
void read_along(const IndexedRow& row, const at::Tensor& out, const at::Tensor& self, int64_t dim,
                const at::Tensor& index, at::IntArrayRef index_strides) {
  c10::SmallVector<int64_t, 6> strides(self.strides().begin(), self.strides().end());
  strides[dim] = 0;
  Indexed(row)
      .iterate(out.sizes())
      .operand(out, out.strides())
      .operand(self, strides)
      .index(index, index_strides, self.size(dim), self.stride(dim), dim)
      .run();
}

struct Gather {
  using Op = Structured<at::meta::structured_gather>;

  static void run(Op& op, const at::Tensor& self, int64_t dim, const at::Tensor& index, bool sparse_grad) {
    op.meta(self, dim, index, sparse_grad);
    if (index.numel() == 0) return;
    const at::Tensor places = at_least_1d(index), source = at_least_1d(self);
    read_along(kGather, at_least_1d(op.outputs[0]), source, at::maybe_wrap_dim(dim, source.dim()), places,
               places.strides());
  }
};

at::Tensor& index_select_out(const at::Tensor& self, int64_t dim, const at::Tensor& index, at::Tensor& out) {
  dim = at::maybe_wrap_dim(dim, self.dim());
  const int64_t count = index.numel();
  TORCH_CHECK_INDEX(index.dim() <= 1, "index_select(): Index is supposed to be a vector");
  TORCH_CHECK(self.dim() != 0 || count == 1, "index_select(): Index to scalar can have only 1 value, got ", count,
              " value(s)");
  TORCH_CHECK(index.scalar_type() == at::kLong || index.scalar_type() == at::kInt,
              "index_select(): Expected dtype int32 or int64 for index");
  TORCH_CHECK(self.scalar_type() == out.scalar_type(),
              "index_select(): self and result must have the same scalar type");
  at::assert_no_internal_overlap(out);
  at::assert_no_overlap(out, self);
  at::assert_no_overlap(out, index);
  auto sizes = self.sizes().vec();
  if (self.dim() > 0) sizes[dim] = count;
  at::native::resize_output(out, sizes);
  if (out.numel() == 0) return out;
  const at::Tensor result = at_least_1d(out);
  c10::SmallVector<int64_t, 6> strides(result.dim(), 0);
  strides[dim] = index.dim() == 0 ? 0 : index.stride(0);
  read_along(kIndexSelect, result, at_least_1d(self), dim, index, strides);
  return out;
}

at::Tensor index_select(const at::Tensor& self, int64_t dim, const at::Tensor& index) {
  at::Tensor out = empty_tensor({0}, {}, self.scalar_type());
  return index_select_out(self, dim, index, out);
}

at::Tensor& take_out(const at::Tensor& self, const at::Tensor& index, at::Tensor& out) {
  TORCH_CHECK(index.scalar_type() == at::kLong, "take(): Expected a long tensor for index, but got ",
              index.scalar_type());
  TORCH_CHECK(self.scalar_type() == out.scalar_type(),
              "take(): self and out expected to have the same dtype, but got self.dtype = ", self.dtype(),
              " and out.dtype = ", out.dtype());
  TORCH_CHECK(self.device() == out.device() && self.device() == index.device(),
              "take(): self, index and out expected to be in the same device, but got self.device = ", self.device(),
              ", index.device = ", index.device(), ", and out.device = ", out.device());
  TORCH_CHECK_INDEX(self.numel() > 0 || index.numel() == 0, "take(): tried to take from an empty tensor");
  at::assert_no_internal_overlap(out);
  at::assert_no_overlap(out, index);
  at::assert_no_overlap(out, self);
  at::native::resize_output(out, index.sizes());
  const c10::SmallVector<int64_t, 6> still(index.dim(), 0);
  Indexed(kTake)
      .iterate(index.sizes())
      .operand(out, out.strides())
      .operand(self.contiguous(), still)
      .index(index, index.strides(), self.numel(), 1, 0)
      .run();
  return out;
}

at::Tensor take(const at::Tensor& self, const at::Tensor& index) {
  at::Tensor out = empty_tensor({0}, {}, self.scalar_type());
  return take_out(self, index, out);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  native<&Forms<Index>::functional, kAny>(library, "index.Tensor");
  native<&Forms<Index>::out, kAny>(library, "index.Tensor_out");
  native<&Forms<Gather>::functional, kAny>(library, "gather");
  native<&Forms<Gather>::out, kAny>(library, "gather.out");
  native<&index_select, kAny>(library, "index_select");
  native<&index_select_out, kAny>(library, "index_select.out");
  native<&take, kAny>(library, "take");
  native<&take_out, kAny>(library, "take.out");
}

}  // namespace
}  // namespace torch_webgpu
