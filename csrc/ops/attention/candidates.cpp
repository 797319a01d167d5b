// The kernels of attention as a table, and the choice among them by shape and adapter.
#include <algorithm>
#include <atomic>
#include <string>

#include "families/launch.h"
#include "ops/attention/attention.h"
#include "shader/attention_staged.h"

namespace torch_webgpu {
namespace {

using Kind = AttentionKind;

// In the order of preference: the first that takes the sizes gets them.
struct Candidate {
  const char* name;
  AttentionKernel kernel;
  int64_t rows;                                   // of a workgroup
  int64_t forward, backward_query, backward_key;  // elements of a head, at most: what registers hold
  int64_t from_rows = 0;                          // of a strip: with fewer, most of a block would be for nothing
  int64_t groups = 0;                             // at least: a GPU has about a hundred units to occupy
};
constexpr int64_t kUnits = 96;  // of a large GPU
constexpr Candidate kStaged[] = {
    {"64 rows", AttentionKernel::staged, 64, 256, 192, 128, 33, 2 * kUnits},
    {"32 rows", AttentionKernel::staged, 32, 256, 192, 128, 9},
};

// Few queries: what a key is multiplied by takes less time than to load it.
constexpr const char* kDecode = "decode";
constexpr int64_t kDecodeRows = 8;

// Loads of single elements make a kernel long: of larger heads than this it exceeds a GPU's cache of instructions.
constexpr int64_t kLargest = 256, kLargestOfElements = 128;

std::atomic<const Candidate*> forced{nullptr};  // for tests
std::atomic<bool> only_lanes{false}, only_staged{false};

int64_t widest_of(const Candidate& candidate, Kind kind) {
  switch (kind) {
    case Kind::forward: return candidate.forward;
    case Kind::backward_query: return candidate.backward_query;
    case Kind::backward_key: return candidate.backward_key;
    default: return 0;
  }
}

}  // namespace

int64_t Attention::blocks_of(Kind kind, int64_t rows) const { return (rows_of(kind) + rows - 1) / rows; }

Attention::Block Attention::block_of(Kind kind) const {
  const int64_t widest = std::max(head_size, value_size);
  if (!target().software && !only_lanes && !only_staged && kind == Kind::forward && in_quads && !flex && dropout == 0 &&
      !wants_most && rows_of(kind) <= kDecodeRows) {
    return {AttentionKernel::decode, rows_of(kind), 0};
  }
  if (!target().software && !only_lanes) {
    const Candidate* const wanted = forced;
    for (const Candidate& candidate : kStaged) {
      const int64_t most = in_quads ? kLargest : kLargestOfElements;
      if (widest > std::min(most, widest_of(candidate, kind)) || (wanted && wanted != &candidate)) continue;
      const int64_t groups = batches * strips_of(kind) * blocks_of(kind, candidate.rows);
      if (wanted || (rows_of(kind) >= candidate.from_rows && groups >= candidate.groups)) {
        return {candidate.kernel, candidate.rows, 0};
      }
    }
  }
  int64_t columns = 1;
  while (columns * 32 < widest) columns *= 2;
  if (!exchanges_by_subgroup()) return {AttentionKernel::lanes, 8, columns};
  // As many sums as registers and the time to compile allow; the keys' kernel has two sets, and each row of a kernel
  // with dropout its own copy of the random numbers, of flex_attention four of the user's functions. Small blocks also
  // keep their queries in registers.
  const int64_t two = 2, sets = (kind == Kind::backward_key ? two : 1) * (dropout > 0 || flex ? two : 1);
  const int64_t most = std::min<int64_t>(16, 32 / columns) / sets;
  const int64_t rows = rows_of(kind);
  return {AttentionKernel::lanes, std::min<int64_t>(most, rows <= 4 ? rows : rows <= 8 ? 8 : 16), columns};
}

void force_attention(const std::string& name) {
  forced = nullptr;
  only_lanes = name == "lanes";
  only_staged = !name.empty() && name != kDecode;
  for (const Candidate& candidate : kStaged) {
    if (candidate.name == name) forced = &candidate;
  }
  TORCH_CHECK_VALUE(name.empty() || name == kDecode || only_lanes || forced.load(),
                    "webgpu: there is no kernel of attention named ", name);
}

}  // namespace torch_webgpu
