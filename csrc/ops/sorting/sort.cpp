#include "ops/sorting/sort.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/native/ReduceOpsUtils.h>
#include <ATen/native/SortingUtils.h>
#include <ATen/ops/sort_meta.h>
#include <ATen/ops/topk_meta.h>
#include <torch/library.h>

#include <algorithm>
#include <utility>

#include "families/launch.h"
#include "families/structured.h"
#include "families/windows.h"
#include "ops/native.h"
#include "ops/sorting/keys.h"
#include "ops/sorting/radix.h"
#include "ops/sorting/scan.h"

namespace torch_webgpu {
namespace {

constexpr Program kRank = make_program("sort", "sort_rank", "u:keys u:order!", "length");
constexpr Program kRadix = make_program("sort", "sort_radix", "u:keys u:order u:counts! u:moved_keys! u:moved_order!",
                                        "length blocks span shift");
constexpr Program kTake = make_program("sort", "sort_take", "T:input u:order u:chosen T:values! i:indices!",
                                       "length inner width first taken");

// For software adapters, and for what radix_sort() cannot hold.
at::Tensor radix_order(at::Tensor keys, const KeyKind& kind, const Lines& lines) {
  const int64_t total = lines.count * lines.length;
  // Wide digits need many counters per block: they are used only if blocks are long.
  const bool wide = target().software && lines.length >= 1024;
  const int64_t bits = wide ? 8 : 4, digits = int64_t{1} << bits;
  const int64_t wanted = std::max<int64_t>(parallel_tasks() / lines.count, 1);
  const int64_t span = std::max(block_span(lines.length, wanted), std::min(lines.length, 4 * digits));
  const int64_t blocks = (lines.length + span - 1) / span;
  const Tasks tasks{lines.count * blocks, span};
  const at::Tensor counts = words_of(tasks.count * digits);
  at::Tensor order = words_of(total), moved_order = words_of(total), moved_keys = words_of(total * kind.words);
  for (int64_t shift = 0; shift < kind.bits; shift += bits) {
    const auto params = {lines.length, blocks, span, shift};
    const auto variant = static_cast<uint32_t>(bits | kind.words << 4 | (shift == 0 ? 128 : 0));
    run(kRadix, at::kInt, tasks, {keys, {}, counts, {}, {}}, params, variant);
    run(kRadix, at::kInt, tasks,
        {keys, shift == 0 ? at::Tensor() : order, running_counts(counts), moved_keys, moved_order}, params,
        variant | 64);
    std::swap(keys, moved_keys);
    std::swap(order, moved_order);
  }
  return order;
}

at::Tensor order_by(at::Tensor keys, const KeyKind& kind, const Lines& lines) {
  const int64_t total = lines.count * lines.length;
  TORCH_CHECK(total < (int64_t{1} << 31), "webgpu: sort: more than 2^31 elements");
  constexpr int64_t kFewest = 32, kCompared = int64_t{1} << 17;
  if (lines.length > kFewest && total * lines.length > kCompared) return radix_order(std::move(keys), kind, lines);
  at::Tensor order = words_of(total);
  run(kRank, at::kInt, {total, lines.length}, {keys, order}, {lines.length}, static_cast<uint32_t>(kind.words));
  return order;
}

constexpr int64_t kShort = 32;        // elements of a line whose rank is counted
constexpr int64_t kGroup = 1024;      // elements that fit in workgroup memory, with an index each
constexpr int64_t kWide = 256;        // elements that busy more lanes than other kernels have
constexpr int64_t kMerged = 1 << 14;  // elements that are merged sooner than launches are made
constexpr int64_t kFew = 64;          // what is chosen by insertion, on software adapters

// The indices of each block's first elements, in order, and how many those are for each line.
at::Tensor choose(const at::Tensor& input, const KeyKind& kind, const Lines& lines, int64_t taken, int64_t& width) {
  const int64_t wanted = std::max<int64_t>(parallel_tasks() / lines.count, 1);
  const int64_t span = std::max(block_span(lines.length, wanted), 8 * taken);
  const int64_t blocks = (lines.length + span - 1) / span;
  width = blocks * taken;
  const at::Tensor keys = words_of(lines.count * width * kind.words), chosen = words_of(lines.count * width);
  run(kind.row.first, kind.compute, {lines.count * blocks, span}, {input, keys, chosen},
      {lines.length, lines.inner, blocks, span, taken}, kind.variant);
  return chosen;
}

// One round on a GPU: the indices of each block's first elements, in no order.
at::Tensor select(const at::Tensor& input, const KeyKind& kind, const Lines& lines, const at::Tensor& chosen,
                  int64_t taken, int64_t& width) {
  const bool many = lines.count * width >= 1 << 17 || 4 * taken > 8 * kRadixLanes;  // else more workgroups
  const int64_t turns = many ? 32 : 8, span = turns * kRadixLanes, blocks = (width + span - 1) / span;
  const int64_t skipped = (32 * kind.words - kind.bits) / 8;  // digits that are the same in all keys
  const at::Tensor next = words_of(lines.count * blocks * taken);
  run(kind.row.select, kind.compute, {lines.count * blocks, span}, {input, chosen, next},
      {lines.length, lines.inner, width, blocks, taken, skipped},
      kind.variant | (chosen.defined() ? 8u : 0u) | static_cast<uint32_t>(turns) << 8);
  width = blocks * taken;
  return next;
}

// Sorts `width` elements of each line, all or those chosen, in workgroup memory.
void sort_in_groups(const at::Tensor& input, const KeyKind& kind, const Lines& lines, at::Tensor chosen, int64_t width,
                    int64_t first, int64_t taken, const at::Tensor& values, const at::Tensor& indices) {
  const int64_t needed = first + taken;
  const auto leaves_much = [&] { return chosen.defined() && width > kWide && width >= 4 * needed; };
  while (width > kGroup || leaves_much()) chosen = select(input, kind, lines, chosen, needed, width);
  uint32_t bits = 0;
  while ((int64_t{1} << bits) < width) ++bits;
  run(width > kWide ? kind.row.wide_group : kind.row.group, kind.compute, {lines.count, width * bits},
      {input, chosen, values, indices}, {lines.length, lines.inner, width, int64_t{1} << bits, first, taken},
      kind.variant | (chosen.defined() ? 8u : 0u) | bits << 8);
}

// The same by merging, in rounds: the first of each block go on to the next.
void merge(const at::Tensor& input, const KeyKind& kind, const Lines& lines, at::Tensor chosen, int64_t width,
           int64_t first, int64_t taken, const at::Tensor& values, const at::Tensor& indices) {
  const int64_t needed = first + taken;
  const int64_t most = chosen.defined() ? 16 * needed : width;  // of the last round
  while (true) {
    const bool last = width <= most;
    const int64_t span = last ? width : 8 * needed, blocks = (width + span - 1) / span;
    uint32_t bits = 0;
    while ((int64_t{1} << bits) < std::min(width, kGroup)) ++bits;
    const Tasks tasks{lines.count * blocks, span * bits};
    const at::Tensor order = words_of(tasks.count * span * 2);
    const at::Tensor next = last ? at::Tensor() : words_of(lines.count * blocks * needed);
    run(kind.row.merge, kind.compute, tasks,
        {input, chosen, order, next, last ? values : at::Tensor(), last ? indices : at::Tensor()},
        {lines.length, lines.inner, width, blocks, span, chosen.defined() ? needed : 1, last ? first : 0,
         last ? taken : needed},
        kind.variant | (chosen.defined() ? 8u : 0u) | (last ? 16u : 0u));
    if (last) return;
    chosen = next;
    width = blocks * needed;
  }
}

void sort_few(const at::Tensor& input, const KeyKind& kind, const Lines& lines, const at::Tensor& chosen, int64_t width,
              int64_t first, int64_t taken, const at::Tensor& values, const at::Tensor& indices) {
  const at::Tensor result = values.is_contiguous() ? values : empty_tensor(values.sizes(), {}, values.scalar_type());
  const at::Tensor places = indices.is_contiguous() ? indices : empty_tensor(indices.sizes(), {}, at::kLong);
  if (lines.length <= kShort) {
    run(kind.row.few, kind.compute, {lines.count * lines.length, lines.length}, {input, result, places},
        {lines.length, lines.inner, first, taken}, kind.variant);
  } else if (target().software) {
    merge(input, kind, lines, chosen, width, first, taken, result, places);
  } else {
    sort_in_groups(input, kind, lines, chosen, width, first, taken, result, places);
  }
  if (!result.is_same(values)) values.copy_(result);
  if (!places.is_same(indices)) indices.copy_(places);
}

bool takes_radix_sort(const KeyKind& kind, const Lines& lines) {
  return !target().software && lines.length > kGroup && fits_radix_sort(kind, lines);
}

// Indices are the largest operand: eight bytes for each element.
bool wants_halves(const at::Tensor& input) {
  return static_cast<uint64_t>(input.numel()) * sizeof(int64_t) > max_binding_bytes();
}

// The first outer lines, then the rest.
void sort_halves(const at::Tensor& input, const Lines& lines, bool descending, int64_t first, int64_t taken,
                 const at::Tensor& values, const at::Tensor& indices) {
  const int64_t outer = lines.count / lines.inner, half = half_of(outer);
  const at::Tensor result = values.contiguous(), places = indices.contiguous();
  const at::Tensor from = input.view({outer, lines.length, lines.inner}), to = result.view({outer, taken, lines.inner}),
                   to_places = places.view({outer, taken, lines.inner});
  for (const auto& [begin, count] : {std::pair{int64_t{0}, half}, {half, outer - half}}) {
    sort_into(from.narrow(0, begin, count), 1, descending, first, taken, to.narrow(0, begin, count),
              to_places.narrow(0, begin, count));
  }
  if (!result.is_same(values)) values.copy_(result);
  if (!places.is_same(indices)) indices.copy_(places);
}

}  // namespace

at::Tensor sorted_order(const at::Tensor& input, const Lines& lines, bool descending) {
  const KeyKind kind(input.scalar_type(), descending);
  const int64_t total = lines.count * lines.length;
  if (lines.inner == 1 && takes_radix_sort(kind, lines)) {
    const at::Tensor order = words_of(total);
    radix_sort(input, kind, lines, 0, 0, {}, {}, order);
    return order;
  }
  const at::Tensor keys = words_of(total * kind.words);
  run(kind.row.all, kind.compute, {total}, {input, keys}, {lines.length, lines.inner}, kind.variant);
  return order_by(keys, kind, lines);
}

void sort_into(const at::Tensor& self, int64_t dim, bool descending, int64_t first, int64_t taken,
               const at::Tensor& values, const at::Tensor& indices) {
  if (values.numel() == 0) return;
  const at::Tensor input = self.contiguous();
  const Lines lines(self, dim);
  if (lines.count > lines.inner && wants_halves(input))
    return sort_halves(input, lines, descending, first, taken, values, indices);
  const KeyKind kind(self.scalar_type(), descending);
  const int64_t needed = first + taken;
  const bool few = target().software && needed <= kFew && lines.length >= 16 * needed;
  const bool scan = few && (lines.count >= parallel_tasks() || lines.length > kGroup);
  at::Tensor chosen;
  int64_t width = lines.length;
  if (scan) chosen = choose(input, kind, lines, needed, width);
  const bool is_ordered = scan && width == needed;
  const bool in_rounds = target().software ? scan : needed <= kGroup;
  const bool in_one = width <= kGroup && (!target().software || lines.count * width <= kMerged);
  if (!is_ordered && (in_one || in_rounds || lines.length <= kShort)) {
    sort_few(input, kind, lines, chosen, width, first, taken, values, indices);
    return;
  }
  const bool radix = !is_ordered && takes_radix_sort(kind, lines);
  if (radix && lines.inner > 1) {  // as rows, whose elements lie side by side
    const at::Tensor rows = self.movedim(dim, -1), found = values.movedim(dim, -1);
    const at::Tensor sorted = empty_tensor(found.sizes(), {}, values.scalar_type()),
                     places = empty_tensor(found.sizes(), {}, at::kLong);
    sort_into(rows, -1, descending, first, taken, sorted, places);
    found.copy_(sorted);
    indices.movedim(dim, -1).copy_(places);
    return;
  }
  const at::ScalarType dtype = self.scalar_type(), stored = word_dtype(dtype);
  // A radix sort that ends with its first pass stores while other blocks still load.
  const bool shares = radix && buffer_of(values) == buffer_of(input);
  const bool direct = stored == dtype && values.is_contiguous() && !shares;
  const at::Tensor result = direct ? values : empty_tensor(values.sizes(), {}, stored);
  const at::Tensor places = indices.is_contiguous() ? indices : empty_tensor(indices.sizes(), {}, at::kLong);
  if (radix) {
    radix_sort(input, kind, lines, first, taken, result, places, {});
  } else {
    const at::Tensor order = is_ordered ? at::Tensor() : sorted_order(input, lines, descending);
    run(kTake, dtype, {lines.count * taken}, {input, order, chosen, result, places},
        {lines.length, lines.inner, width, first, taken}, (order.defined() ? 1 : 0) | (chosen.defined() ? 2 : 0));
  }
  if (!result.is_same(values)) values.copy_(result);
  if (!places.is_same(indices)) indices.copy_(places);
}

namespace {

using Pair = std::tuple<at::Tensor, at::Tensor>;
using PairOut = std::tuple<at::Tensor&, at::Tensor&>;

struct Sort {
  static void run(Structured<at::meta::structured_sort_stable, 2>& op, const at::Tensor& self,
                  std::optional<bool> stable, int64_t dim, bool descending) {
    TORCH_CHECK(!self.is_complex(), " Sort does not support complex dtypes on CPU");
    op.meta(self, stable, dim, descending);
    sort_into(self, dim, descending, 0, self.dim() ? self.size(dim) : 1, op.outputs[0], op.outputs[1]);
  }
};

struct Topk {
  static void run(Structured<at::meta::structured_topk, 2>& op, const at::Tensor& self, int64_t k, int64_t dim,
                  bool largest, bool sorted) {
    TORCH_CHECK(!self.is_complex(), "topk does not support complex dtypes on CPU");
    TORCH_CHECK(self.scalar_type() != at::kBool, "topk does not support bool dtypes on CPU");
    op.meta(self, k, dim, largest, sorted);
    if (self.dim() == 0) {  // its one value, also as the first none
      op.outputs[0].copy_(self);
      op.outputs[1].zero_();
      return;
    }
    sort_into(self, dim, largest, 0, k, op.outputs[0], op.outputs[1]);
  }
};

PairOut kthvalue_out(const at::Tensor& self, int64_t k, int64_t dim, bool keepdim, at::Tensor& values,
                     at::Tensor& indices) {
  dim = at::maybe_wrap_dim(dim, self.dim());
  at::native::zero_numel_check_dims(self, dim, "kthvalue()");
  TORCH_CHECK(k >= 1 && k <= (self.dim() > 0 ? self.size(dim) : 1),
              "kthvalue(): selected number k out of range for dimension ", dim);
  at::assert_no_overlap(self, values);
  at::native::_reduction_with_indices_allocate_or_resize_output(values, indices, self, dim, keepdim);
  TORCH_CHECK_NOT_IMPLEMENTED(self.scalar_type() != at::kBool || self.dim() == 0,
                              "\"kthvalue_cpu\" not implemented for 'Bool'");
  sort_into(self, dim, false, k - 1, 1, values, indices);
  if (!keepdim && self.dim() > 0) {
    values.squeeze_(dim);
    indices.squeeze_(dim);
  }
  return {values, indices};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  native<&Forms<Sort>::functional>(library, "sort.stable");
  native<&Forms<Sort>::out>(library, "sort.values_stable");
  native<&Forms<Topk>::functional>(library, "topk");
  native<&Forms<Topk>::out>(library, "topk.values");
  native<&kthvalue_out>(library, "kthvalue.values");
}

}  // namespace
}  // namespace torch_webgpu
