#include "families/accumulate.h"

#include <bit>

namespace torch_webgpu {
namespace {

constexpr uint8_t kActs = IndexedRow::raw | IndexedRow::acts;
constexpr IndexedRow kCount{"radix_count", "count_digits(step);", kActs, 2, 1, "radix"};
constexpr IndexedRow kScanRow{"radix_scan", "scan_row(step);", kActs, 1, 1, "radix_scan"};
constexpr IndexedRow kScanTotals{"radix_totals", "scan_totals();", kActs, 1, 1, "radix_scan"};
constexpr IndexedRow kMove{"radix_move", "move_pairs(step);", kActs, 2, 1, "radix_move"};

// The invocation at a key's first pair folds all pairs of that key. x: destinations, columns, pairs, whether the old
// value counts, whether each step is rounded as a store would.
#define SEGMENT(combine, finish)                                 \
  "let pair = load2(d1);"                                        \
  "if (pair.x >= x(0u)) { return; }"                             \
  "if (d1 > 0u) { if (load2(d1 - 1u).x == pair.x) { return; } }" \
  "let place = i0 + pair.x * x(1u);"                             \
  "var acc = load0(place);"                                      \
  "var fresh = x(3u) == 0u;"                                     \
  "var k = d1;"                                                  \
  "while (k < x(2u)) {"                                          \
  "  let next = load2(k);"                                       \
  "  if (next.x != pair.x) { break; }"                           \
  "  let b = load1(i1 + next.y * x(1u));"                        \
  "  if (fresh) { acc = b; } else { acc = " combine              \
  "; }"                                                          \
  "  if (x(4u) != 0u) { acc = rounded(acc); }"                   \
  "  fresh = false;"                                             \
  "  k += 1u;"                                                   \
  "}"                                                            \
  "let count = k - d1;"                                          \
  "store(place, " finish ");"
constexpr IndexedRow kSegments[] = {{"segment_sum", SEGMENT("add(acc, b)", "acc"), IndexedRow::acts},
                                    {"segment_prod", SEGMENT("mul(acc, b)", "acc"), IndexedRow::acts},
                                    {"segment_amax", SEGMENT("max(acc, b)", "acc"), IndexedRow::acts},
                                    {"segment_amin", SEGMENT("min(acc, b)", "acc"), IndexedRow::acts},
                                    {"segment_mean", SEGMENT("acc + b", "acc / f32(count)"), IndexedRow::acts},
                                    {"segment_last", SEGMENT("b", "acc"), IndexedRow::acts}};

// Sorts the pairs by key, below `limit`; equal keys keep their order.
void sort_pairs(at::Tensor& pairs, int64_t limit) {
  const int64_t count = pairs.numel();
  const int64_t most = target().software ? 128 : 4096;
  const int64_t threads = std::clamp<int64_t>(count / 64, 1, most), piece = (count + threads - 1) / threads;
  at::Tensor table = empty_tensor({256 * threads + 256}, {}, at::kInt), other = empty_tensor({count}, {}, at::kLong);
  for (int shift = 0; shift < 64 - std::countl_zero(static_cast<uint64_t>(limit)); shift += 8) {
    const auto run = [&](const IndexedRow& row, int64_t steps, std::initializer_list<const at::Tensor*> operands) {
      Indexed launch(row);
      launch.iterate({steps});
      for (const auto* operand : operands) launch.operand(*operand, {0});
      launch.extra(count).extra(piece).extra(shift).extra(threads).run();
    };
    run(kCount, threads, {&table, &pairs});
    run(kScanRow, 256, {&table});
    run(kScanTotals, 1, {&table});
    run(kMove, threads, {&other, &pairs, &table});
    std::swap(pairs, other);
  }
}

}  // namespace

Indexed destination_keys(const IndexedRow& row, Destinations& destinations, at::IntArrayRef sizes,
                         at::IntArrayRef strides, int64_t skipped) {
  destinations.pairs = empty_tensor({c10::multiply_integers(sizes)}, {}, at::kLong);
  Indexed launch(row);
  launch.iterate(sizes)
      .operand(destinations.pairs, dense_strides(sizes))
      .operand(destinations.pairs, strides)  // only its place is used
      .extra(destinations.count)
      .extra(skipped);
  return launch;
}

void accumulate(Accumulate how, const at::Tensor& out, const at::Tensor& source, Destinations destinations,
                int64_t columns, bool include_self, bool rounds) {
  TORCH_INTERNAL_ASSERT(out.is_contiguous() && source.is_contiguous());
  const int64_t entries = destinations.pairs.numel();
  if (entries == 0 || columns == 0) return;
  TORCH_CHECK(destinations.count < int64_t{0xffffffff} && entries < int64_t{0xffffffff},
              "webgpu: more than 2^32 - 1 destinations");
  sort_pairs(destinations.pairs, destinations.count);
  Indexed(kSegments[static_cast<size_t>(how)], out.scalar_type())
      .iterate({entries, columns})
      .operand(out, {0, 1})
      .operand(source, {0, 1})
      .operand_bits(destinations.pairs, {0, 0})
      .extra(destinations.count)
      .extra(columns)
      .extra(entries)
      .extra(include_self)
      .extra(rounds)
      .run();
}

}  // namespace torch_webgpu
