#include "ops/sort.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/native/ReduceOpsUtils.h>
#include <ATen/native/SortingUtils.h>
#include <ATen/ops/sort_meta.h>
#include <ATen/ops/topk_meta.h>
#include <torch/library.h>

#include <algorithm>
#include <utility>

#include "ops/launch.h"
#include "ops/program.h"
#include "ops/scan.h"
#include "ops/structured.h"

namespace torch_webgpu {
namespace {

#define KEYS(expression)                                               \
  make_program("sort", "sort_keys", "T:input u:keys!", "length inner", \
               "fn key(a: T) -> vec2<u32> { return " expression "; }")

constexpr Program kFloatKeys = KEYS("vec2<u32>(float_key(a), 0u)");
constexpr Program kHalfKeys = KEYS("vec2<u32>(half_key(a), 0u)");
constexpr Program kBFloatKeys = KEYS("vec2<u32>(float_key(a) >> 16u, 0u)");
constexpr Program kLongKeys = KEYS("vec2<u32>(a.x, a.y ^ 0x80000000u)");
constexpr Program kIntKeys = KEYS("vec2<u32>(bitcast<u32>(a) ^ 0x80000000u, 0u)");
constexpr Program kShortKeys = KEYS("vec2<u32>(u32(a + 32768), 0u)");
constexpr Program kCharKeys = KEYS("vec2<u32>(u32(a + 128), 0u)");
constexpr Program kByteKeys = KEYS("vec2<u32>(u32(a), 0u)");
constexpr Program kRank = make_program("sort", "sort_rank", "u:keys u:order!", "length");
constexpr Program kRadix = make_program("sort", "sort_radix", "u:keys u:order u:counts! u:moved_keys! u:moved_order!",
                                        "length blocks span shift");
constexpr Program kTake =
    make_program("sort", "sort_take", "T:input u:order T:values! i:indices!", "length inner first taken");

const Program& key_program(at::ScalarType dtype) {
  switch (dtype) {
    case at::kHalf: return kHalfKeys;
    case at::kBFloat16: return kBFloatKeys;
    case at::kLong: return kLongKeys;
    case at::kInt: return kIntKeys;
    case at::kShort: return kShortKeys;
    case at::kChar: return kCharKeys;
    case at::kByte:
    case at::kBool: return kByteKeys;
    default: return kFloatKeys;
  }
}

struct Keys {
  at::Tensor words;
  int64_t words_per_key, bits;
};

Keys make_keys(const at::Tensor& input, const Lines& lines, bool descending) {
  const at::ScalarType dtype = input.scalar_type();
  const int64_t words = dtype == at::kLong ? 2 : 1, total = lines.count * lines.length;
  Keys keys{empty_tensor({total * words}, {}, at::kInt), words, 8 * input.element_size()};
  run(key_program(dtype), dtype == at::kBool ? at::kByte : dtype, {total}, {input, keys.words},
      {lines.length, lines.inner}, static_cast<uint32_t>(2 * words + (descending ? 1 : 0)));
  return keys;
}

at::Tensor radix_order(Keys keys, const Lines& lines) {
  const int64_t total = lines.count * lines.length;
  // Counters are few against the elements: wide digits only where blocks are long.
  const bool wide = target().software && lines.length > 2048;
  const int64_t bits = wide ? 8 : 4, digits = int64_t{1} << bits;
  const int64_t wanted = std::max<int64_t>(parallel_tasks() / lines.count, 1);
  const int64_t span = std::max((lines.length + wanted - 1) / wanted, std::min(lines.length, 4 * digits));
  const int64_t blocks = (lines.length + span - 1) / span;
  const Tasks tasks{lines.count * blocks, span};
  const at::Tensor counts = empty_tensor({tasks.count * digits}, {}, at::kInt);
  at::Tensor order = empty_tensor({total}, {}, at::kInt), moved_order = empty_tensor({total}, {}, at::kInt);
  at::Tensor moved_keys = empty_tensor(keys.words.sizes(), {}, at::kInt);
  for (int64_t shift = 0; shift < keys.bits; shift += bits) {
    const auto params = {lines.length, blocks, span, shift};
    const auto variant = static_cast<uint32_t>(bits | keys.words_per_key << 4 | (shift == 0 ? 128 : 0));
    run(kRadix, at::kInt, tasks, {keys.words, {}, counts, {}, {}}, params, variant);
    run(kRadix, at::kInt, tasks,
        {keys.words, shift == 0 ? at::Tensor() : order, running_counts(counts), moved_keys, moved_order}, params,
        variant | 64);
    std::swap(keys.words, moved_keys);
    std::swap(order, moved_order);
  }
  return order;
}

void check_sortable(const at::Tensor& self, const char* op) { kernel_dtype(self.scalar_type(), op); }

}  // namespace

at::Tensor sorted_order(const at::Tensor& input, const Lines& lines, bool descending) {
  const int64_t total = lines.count * lines.length;
  TORCH_CHECK(total < (int64_t{1} << 31), "webgpu: sort: more than 2^31 elements");
  Keys keys = make_keys(input, lines, descending);
  constexpr int64_t kShort = 32, kCompared = int64_t{1} << 17;
  if (lines.length > kShort && total * lines.length > kCompared) return radix_order(std::move(keys), lines);
  at::Tensor order = empty_tensor({total}, {}, at::kInt);
  run(kRank, at::kInt, {total, lines.length}, {keys.words, order}, {lines.length},
      static_cast<uint32_t>(keys.words_per_key));
  return order;
}

void sort_into(const at::Tensor& self, int64_t dim, bool descending, int64_t first, int64_t taken,
               const at::Tensor& values, const at::Tensor& indices) {
  if (values.numel() == 0) return;
  const at::Tensor input = self.contiguous();
  const Lines lines(self, dim);
  const at::Tensor order = sorted_order(input, lines, descending);
  const at::ScalarType dtype = self.scalar_type(), stored = word_dtype(dtype);
  const at::Tensor result =
      stored == dtype && values.is_contiguous() ? values : empty_tensor(values.sizes(), {}, stored);
  const at::Tensor places = indices.is_contiguous() ? indices : empty_tensor(indices.sizes(), {}, at::kLong);
  run(kTake, dtype, {lines.count * taken}, {input, order, result, places}, {lines.length, lines.inner, first, taken});
  if (!result.is_same(values)) values.copy_(result);
  if (!places.is_same(indices)) indices.copy_(places);
}

namespace {

using Pair = std::tuple<at::Tensor, at::Tensor>;
using PairOut = std::tuple<at::Tensor&, at::Tensor&>;

using SortMeta = Structured<at::meta::structured_sort_stable, 2>;

void sort(SortMeta& op, const at::Tensor& self, std::optional<bool> stable, int64_t dim, bool descending) {
  op.meta(self, stable, dim, descending);
  check_sortable(self, "sort");
  sort_into(self, dim, descending, 0, self.dim() ? self.size(dim) : 1, op.outputs[0], op.outputs[1]);
}

Pair sort_stable(const at::Tensor& self, std::optional<bool> stable, int64_t dim, bool descending) {
  SortMeta op(Form::functional);
  sort(op, self, stable, dim, descending);
  return {op.outputs[0], op.outputs[1]};
}

PairOut sort_stable_out(const at::Tensor& self, std::optional<bool> stable, int64_t dim, bool descending,
                        at::Tensor& values, at::Tensor& indices) {
  SortMeta op(Form::out);
  op.outputs = {values, indices};
  sort(op, self, stable, dim, descending);
  return {values, indices};
}

using TopkMeta = Structured<at::meta::structured_topk, 2>;

void take_top(TopkMeta& op, const at::Tensor& self, int64_t k, int64_t dim, bool largest, bool sorted) {
  op.meta(self, k, dim, largest, sorted);
  check_sortable(self, "topk");
  sort_into(self, dim, largest, 0, k, op.outputs[0], op.outputs[1]);
}

Pair topk(const at::Tensor& self, int64_t k, int64_t dim, bool largest, bool sorted) {
  TopkMeta op(Form::functional);
  take_top(op, self, k, dim, largest, sorted);
  return {op.outputs[0], op.outputs[1]};
}

PairOut topk_out(const at::Tensor& self, int64_t k, int64_t dim, bool largest, bool sorted, at::Tensor& values,
                 at::Tensor& indices) {
  TopkMeta op(Form::out);
  op.outputs = {values, indices};
  take_top(op, self, k, dim, largest, sorted);
  return {values, indices};
}

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
  library.impl("kthvalue.values", &kthvalue_out);
  library.impl("sort.stable", &sort_stable);
  library.impl("sort.values_stable", &sort_stable_out);
  library.impl("topk", &topk);
  library.impl("topk.values", &topk_out);
}

}  // namespace
}  // namespace torch_webgpu
