// The kernels of attention as a table, and the choice among them by shape and adapter.
#include <algorithm>
#include <atomic>
#include <iterator>
#include <limits>
#include <string>

#include "families/launch.h"
#include "ops/attention/attention.h"

namespace torch_webgpu {
namespace {

using Kind = AttentionKind;

constexpr int64_t kAny = std::numeric_limits<int64_t>::max();

// In the order of preference: the first that takes the sizes gets them. GPUs choose among all, software adapters have
// the last one.
struct Candidate {
  const char* name;
  AttentionKernel kernel;
  int64_t rows;  // of a workgroup; 0: as many as there are
  // Elements of a head, or of a value, at most: what registers hold without spilling. 0: there is no such kernel.
  int64_t forward, backward_query, backward_key;
  int64_t from_rows = 1, to_rows = kAny;  // of a strip: with fewer, most of a block would be for nothing
  int64_t groups = 0;                     // at least: a GPU has about a hundred units to occupy
};
constexpr int64_t kUnits = 96;      // of a large GPU
constexpr int64_t kDecodeRows = 8;  // with more, the products of a key take longer than to load it
constexpr Candidate kCandidates[] = {
    {"decode", AttentionKernel::decode, 0, 256, 0, 0, 1, kDecodeRows},
    {"64 rows", AttentionKernel::staged, 64, 256, 192, 128, 33, kAny, 2 * kUnits},
    {"32 rows", AttentionKernel::staged, 32, 256, 192, 128, 9},
    {"lanes", AttentionKernel::lanes, 8, kAny, kAny, kAny},
};
// Loads of single elements make a kernel long: of larger heads than this it exceeds a GPU's cache of instructions.
constexpr int64_t kLargestOfElements = 128;

std::atomic<const Candidate*> forced{nullptr};  // for tests

int64_t widest_of(const Candidate& candidate, Kind kind) {
  switch (kind) {
    case Kind::forward: return candidate.forward;
    case Kind::backward_query: return candidate.backward_query;
    case Kind::backward_key: return candidate.backward_key;
    default: return candidate.kernel == AttentionKernel::lanes ? kAny : 0;
  }
}

}  // namespace

int64_t Attention::blocks_of(Kind kind, int64_t rows) const { return (rows_of(kind) + rows - 1) / rows; }

Attention::Block Attention::block_by_lanes(Kind kind) const {
  int64_t columns = 1;
  while (columns * 32 < std::max(head_size, value_size)) columns *= 2;
  if (!exchanges_by_subgroup()) return {AttentionKernel::lanes, 8, columns};
  // As many sums as registers and the time to compile allow; the keys' kernel has two sets, and each row of a kernel
  // with dropout its own copy of the random numbers, of flex_attention four of the user's functions. Small blocks also
  // keep their queries in registers.
  const int64_t two = 2, sets = (kind == Kind::backward_key ? two : 1) * (dropout > 0 || flex ? two : 1);
  const int64_t most = std::min<int64_t>(16, 32 / columns) / sets;
  const int64_t rows = rows_of(kind);
  return {AttentionKernel::lanes, std::min<int64_t>(most, rows <= 4 ? rows : rows <= 8 ? 8 : 16), columns};
}

Attention::Block Attention::block_of(Kind kind) const {
  if (target().software) return block_by_lanes(kind);
  const int64_t widest = std::max(head_size, value_size), rows = rows_of(kind);
  const auto can_run = [&](const Candidate& candidate) {
    if (widest > widest_of(candidate, kind) || rows > candidate.to_rows) return false;
    switch (candidate.kernel) {
      case AttentionKernel::decode: return in_quads && !flex && dropout == 0 && !wants_most;
      case AttentionKernel::staged: return in_quads || widest <= kLargestOfElements;
      default: return true;
    }
  };
  const auto is_worth = [&](const Candidate& candidate) {
    return rows >= candidate.from_rows &&
           (candidate.groups == 0 || batches * strips_of(kind) * blocks_of(kind, candidate.rows) >= candidate.groups);
  };
  const Candidate* chosen = forced;
  if (!chosen || !can_run(*chosen)) {
    chosen = std::find_if(std::begin(kCandidates), std::end(kCandidates) - 1,
                          [&](const Candidate& candidate) { return can_run(candidate) && is_worth(candidate); });
  }
  if (chosen->kernel == AttentionKernel::lanes) return block_by_lanes(kind);
  return {chosen->kernel, chosen->rows ? chosen->rows : rows, 0};
}

void force_attention(const std::string& name) {
  forced = nullptr;
  for (const Candidate& candidate : kCandidates) {
    if (candidate.name == name) forced = &candidate;
  }
  TORCH_CHECK_VALUE(name.empty() || forced.load(), "webgpu: there is no kernel of attention named ", name);
}

}  // namespace torch_webgpu
