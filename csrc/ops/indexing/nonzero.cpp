// Ops whose result depends on what a mask holds: nonzero, masked_select, masked_scatter_, repeat_interleave.
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/ops/item.h>

#include "families/indexed.h"
#include "families/structured.h"
#include "ops/native.h"
#include "runtime/messages.h"

namespace torch_webgpu {
namespace {

constexpr IndexedRow kCount{"mask_count", "return count_set(step, i1);", 0, 2, 1, "compact"};
constexpr IndexedRow kScan{"mask_scan", "scan_pieces();", IndexedRow::raw | IndexedRow::acts, 1, 1, "compact_scan"};

// Runs for each set element: `k` is its index, `slot` its rank among the set ones.
#define EACH_SET(action)                                   \
  "var slot = load2(step);"                                \
  "for (var k = step * x(1u); k < piece_end(step); k++) {" \
  "  if (ne(load1(i1 + k), zero)) { " action               \
  " slot += 1u; }"                                         \
  "}"
// x(4u): rows there is room for, x(5u), x(6u): strides of the output, x(7u): rank, then sizes
constexpr IndexedRow kNonzero{"nonzero",
                              EACH_SET("if (slot < x(4u)) { var rest = k;"
                                       "for (var d = x(7u); d > 0u; d--) { let size = x(7u + d);"
                                       "store(i0 + slot * x(5u) + (d - 1u) * x(6u), vec2<u32>(rest % size, 0u));"
                                       "rest /= size; } }"),
                              IndexedRow::acts,
                              2,
                              1,
                              "compact"};
constexpr IndexedRow kSelect{"masked_select", EACH_SET("store(i0 + slot, load3(i3 + k));"), IndexedRow::acts, 2, 1,
                             "compact"};
// x(4u): elements of the source, x(5u): the message where they are too few.
constexpr IndexedRow kMaskedScatter{
    "masked_scatter_",
    EACH_SET("if (slot >= x(4u)) { complain(x(5u)); return; } store(i0 + k, load3(i3 + slot));"),
    IndexedRow::acts | IndexedRow::checks,
    2,
    1,
    "compact"};

// A mask cut into pieces, with the number of set elements before each.
class Compaction {
 public:
  explicit Compaction(const at::Tensor& given) : mask_(given.contiguous()) {
    const int64_t most = target().software ? 128 : 4096;
    threads_ = std::clamp<int64_t>(mask_.numel() / 64, 1, most);
    piece_ = (mask_.numel() + threads_ - 1) / threads_;
    places_ = empty_tensor({threads_ + 1}, {}, at::kInt);
    Indexed count(kCount, mask_.scalar_type());
    sized(count.iterate({threads_}).operand_bits(places_, {1}).operand(mask_, {0})).run();
    sized(Indexed(kScan).iterate({1}).operand(places_, {0})).run();
  }

  int64_t total() const { return places_.select(0, threads_).item<int>(); }

  // Rows of EACH_SET: operands are the output, the mask, the places, and values.
  Indexed launch(const IndexedRow& row, const at::Tensor& out, const at::Tensor& values = {}) const {
    Indexed launch(row, mask_.scalar_type());
    launch.iterate({threads_}).operand_bits(out, {0}).operand(mask_, {0}).operand_bits(places_, {0});
    if (values.defined()) launch.operand_bits(values, {0});
    return sized(launch);
  }

 private:
  Indexed& sized(Indexed& launch) const { return launch.extra(mask_.numel()).extra(piece_).extra(0).extra(threads_); }

  at::Tensor mask_, places_;
  int64_t threads_, piece_;
};

void write_nonzero(const Compaction& compaction, const at::Tensor& self, const at::Tensor& out) {
  if (self.dim() == 0 || out.numel() == 0) return;
  Indexed launch = compaction.launch(kNonzero, out);
  launch.extra(out.size(0)).extra(out.stride(0)).extra(out.stride(1)).extra(self.dim());
  for (const int64_t size : self.sizes()) launch.extra(size);
  launch.run();
}

// Masks of dtypes that kernels do not compute with are made by a comparison.
at::Tensor as_mask(const at::Tensor& self) { return dtype_of(self.scalar_type()) ? self : self.ne(0); }

at::Tensor& nonzero_out(const at::Tensor& self, at::Tensor& out) {
  TORCH_CHECK(out.scalar_type() == at::kLong,
              "nonzero: Expected out tensor to have scalar type Long but got scalar type", out.scalar_type());
  at::assert_no_internal_overlap(out);
  at::assert_no_overlap(out, self);
  if (self.numel() == 0) {
    at::native::resize_output(out, {0, self.dim()});
    return out;
  }
  const Compaction compaction(as_mask(self));
  at::native::resize_output(out, {compaction.total(), self.dim()});
  write_nonzero(compaction, self, out);
  return out;
}

// The result is stored coordinate by coordinate (column-major), as on the CPU.
at::Tensor nonzero(const at::Tensor& self) {
  if (self.numel() == 0) return empty_tensor({0, self.dim()}, {}, at::kLong);
  const Compaction compaction(as_mask(self));
  at::Tensor out = empty_tensor({self.dim(), compaction.total()}, {}, at::kLong).t();
  write_nonzero(compaction, self, out);
  return out;
}

at::Tensor& nonzero_static_out(const at::Tensor& self, int64_t size, int64_t fill_value, at::Tensor& out) {
  TORCH_CHECK(size >= 0, "nonzero_static: 'size' must be an non-negative integer");
  TORCH_CHECK(out.scalar_type() == at::kLong,
              "nonzero_static: Expected out tensor to have scalar type Long but got scalar type", out.scalar_type());
  at::native::resize_output(out, {size, self.dim()});
  out.fill_(fill_value);
  if (self.numel() > 0 && out.numel() > 0) write_nonzero(Compaction(as_mask(self)), self, out);
  return out;
}

at::Tensor nonzero_static(const at::Tensor& self, int64_t size, int64_t fill_value) {
  TORCH_CHECK(size >= 0, "nonzero_static: 'size' must be an non-negative integer");
  at::Tensor out = empty_tensor({size, self.dim()}, {}, at::kLong);
  return nonzero_static_out(self, size, fill_value, out);
}

at::Tensor& masked_select_out(const at::Tensor& self, const at::Tensor& mask, at::Tensor& out) {
  TORCH_CHECK(mask.scalar_type() == at::kBool, "masked_select: expected BoolTensor for mask");
  TORCH_CHECK(self.scalar_type() == out.scalar_type(),
              "masked_select(): self and result must have the same scalar type");
  at::assert_no_internal_overlap(out);
  at::assert_no_overlap(out, self);
  at::assert_no_overlap(out, mask);
  const auto [wide_mask, wide_self] = at::expand_outplace(mask, self);
  if (wide_mask->numel() == 0) {
    at::native::resize_output(out, {0});
    return out;
  }
  const Compaction compaction(*wide_mask);
  const int64_t total = compaction.total();
  at::native::resize_output(out, {total});
  if (total == 0) return out;
  const at::Tensor work = out.is_contiguous() ? out : empty_tensor({total}, {}, out.scalar_type());
  compaction.launch(kSelect, work, wide_self->contiguous()).run();
  if (!work.is_same(out)) out.copy_(work);
  return out;
}

at::Tensor masked_select(const at::Tensor& self, const at::Tensor& mask) {
  at::Tensor out = empty_tensor({0}, {}, self.scalar_type());
  return masked_select_out(self, mask, out);
}

at::Tensor& masked_scatter_(at::Tensor& self, const at::Tensor& mask, const at::Tensor& source) {
  at::assert_no_internal_overlap(self);
  TORCH_CHECK(self.scalar_type() == source.scalar_type(),
              "masked_scatter: expected self and source to have same dtypes but got ", self.scalar_type(), " and ",
              source.scalar_type());
  TORCH_CHECK(mask.scalar_type() == at::kBool, "masked_scatter_ only supports boolean masks, but got mask with dtype ",
              mask.scalar_type());
  const auto wide_mask = at::expand_inplace(self, mask, "masked_scatter_");
  if (self.numel() == 0) return self;
  const at::Tensor work = self.contiguous();
  Compaction(*wide_mask)
      .launch(kMaskedScatter, work, source.contiguous())
      .extra(source.numel())
      .extra(message_number("Number of elements of source < number of ones in mask"))
      .run();
  if (!work.is_same(self)) self.copy_(work);
  return self;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  native<&nonzero, kAny>(library, "nonzero");
  native<&nonzero_out, kAny>(library, "nonzero.out");
  native<&nonzero_static, kAny>(library, "nonzero_static");
  native<&nonzero_static_out, kAny>(library, "nonzero_static.out");
  native<&masked_select, kAny>(library, "masked_select");
  native<&masked_select_out, kAny>(library, "masked_select.out");
  native<&masked_scatter_, kAny>(library, "masked_scatter_");
}

}  // namespace
}  // namespace torch_webgpu
