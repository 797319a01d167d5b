#include "ops/sorting/radix.h"

#include "families/windows.h"

namespace torch_webgpu {
namespace {

constexpr int64_t kBits = 8, kDigits = 256;

// Elements of a lane: many, so that runs of equal digits are long, where even so there is work for all of a GPU.
int64_t turns_of(const Lines& lines) {
  constexpr int64_t kMany = 1 << 18;
  return lines.count * lines.length >= kMany ? 13 : 3;
}
enum Stage : uint32_t { kFirst = 8, kMoves = 16, kEnds = 32, kChecked = 64 };

// Elements between passes: two copies of their words and of an index.
int64_t room_words(const KeyKind& kind, const Lines& lines) {
  return lines.count * lines.length * (kind.words + 1) * 2;
}

// Integers are often small: the bits in which their keys differ tell which passes would leave all where it is.
at::Tensor varied_bits(const at::Tensor& rows, const KeyKind& kind, int64_t total) {
  constexpr int64_t kEach = int64_t{16} * kRadixLanes;
  const at::Tensor varied = words_of(kind.words).zero_();
  run(kind.row.varied, kind.compute, {(total + kEach - 1) / kEach, kEach}, {rows, varied}, {total}, kind.variant);
  return varied;
}

}  // namespace

bool fits_radix_sort(const KeyKind& kind, const Lines& lines) {
  return static_cast<uint64_t>(room_words(kind, lines)) * 4 <= max_binding_bytes();
}

void radix_sort(const at::Tensor& rows, const KeyKind& kind, const Lines& lines, int64_t first, int64_t taken,
                const at::Tensor& values, const at::Tensor& indices, const at::Tensor& order) {
  const int64_t total = lines.count * lines.length, turns = turns_of(lines), block = turns * kRadixLanes,
                blocks = (lines.length + block - 1) / block;
  const Tasks tasks{lines.count * blocks, block};
  const bool checked = kind.bits >= 32 && kind.compute != at::kFloat;
  const uint32_t shared = kind.variant | (checked ? kChecked : 0u) | static_cast<uint32_t>(turns) << 8;
  const at::Tensor varied = checked ? varied_bits(rows, kind, total) : at::Tensor();
  const at::Tensor counts = words_of(tasks.count * kDigits);
  const at::Tensor totals = blocks == 1 ? counts : words_of(lines.count * kDigits);
  const at::Tensor room = kind.bits > kBits ? words_of(room_words(kind, lines)) : at::Tensor();
  const at::Tensor none;
  for (int64_t shift = 0; shift < kind.bits; shift += kBits) {
    const bool starts = shift == 0, moves = kind.bits > kBits, may_end = !starts || checked || !moves;
    const at::Tensor input = starts ? rows : none, from = starts ? none : room;
    const auto params = {total, lines.length, blocks, shift, kind.bits};
    const uint32_t variant = shared | (starts ? kFirst : 0u);
    run(kind.row.count, kind.compute, tasks, {input, from, varied, counts}, params, variant);
    // Of a single block the counts are the totals, and none come before it.
    if (blocks > 1) {
      run(kind.row.offsets, kind.compute, {lines.count * kDigits, blocks}, {none, none, varied, counts, totals}, params,
          shared);
    }
    run(kind.row.move, kind.compute, tasks,
        {input, moves ? room : none, varied, blocks > 1 ? counts : none, totals, may_end ? values : none,
         may_end ? indices : none, may_end ? order : none},
        {total, lines.length, blocks, shift, kind.bits, first, taken},
        variant | (moves ? kMoves : 0u) | (may_end ? kEnds : 0u));
  }
}

}  // namespace torch_webgpu
