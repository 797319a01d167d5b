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
constexpr int64_t kLast = std::size(kCandidates) - 1;
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

bool Attention::can_run(int64_t number, Kind kind) const {
  const Candidate& candidate = kCandidates[number];
  const int64_t widest = std::max(head_size, value_size);
  if (widest > widest_of(candidate, kind) || rows_of(kind) > candidate.to_rows) return false;
  switch (candidate.kernel) {
    case AttentionKernel::decode: return in_quads && !flex && dropout == 0 && !wants_most;
    case AttentionKernel::staged: return in_quads || widest <= kLargestOfElements;
    default: return true;
  }
}

int64_t Attention::first_of_table(Kind kind) const {
  const auto is_worth = [&](const Candidate& candidate) {
    return rows_of(kind) >= candidate.from_rows &&
           (candidate.groups == 0 || batches * strips_of(kind) * blocks_of(kind, candidate.rows) >= candidate.groups);
  };
  for (int64_t number = 0; number < kLast; ++number) {
    if (can_run(number, kind) && is_worth(kCandidates[number])) return number;
  }
  return kLast;
}

int64_t Attention::number_of(Kind kind) const {
  if (const Candidate* wanted = forced; wanted && can_run(wanted - kCandidates, kind)) return wanted - kCandidates;
  const int64_t found = measured[static_cast<size_t>(kind)];
  return found == kUnmeasured ? first_of_table(kind) : found;
}

Attention::Block Attention::block_of(Kind kind) const {
  if (target().software) return block_by_lanes(kind);
  const Candidate& chosen = kCandidates[number_of(kind)];
  if (chosen.kernel == AttentionKernel::lanes) return block_by_lanes(kind);
  return {chosen.kernel, chosen.rows ? chosen.rows : rows_of(kind), 0};
}

void Attention::choose_by_time(Kind kind, const at::Tensor& query, bool has_mask,
                               c10::function_ref<Contest()> contest) {
  if (target().software || flex) return;
  ChoiceKey key(Family::attention);
  key.add(static_cast<uint64_t>(kind), 3).add_dtype(query);
  key.add(causal, 1).add(has_mask, 1).add(dropout > 0, 1).add(in_quads, 1);
  key.add(static_cast<uint64_t>(head_size), 9).add(static_cast<uint64_t>(value_size), 9);
  key.add_size(batches * heads).add_size(group()).add_size(queries).add_size(keys);
  const int64_t first = first_of_table(kind), work = batches * heads * queries * keys * (head_size + value_size);
  const int64_t number = choose_measured(key.value(), first, work, [&] {
    Contest of_kernels = contest();
    of_kernels.family = "attention";
    of_kernels.reference = kLast;
    of_kernels.kernels.push_back({first, kCandidates[first].name});
    for (int64_t other = 0; other <= kLast; ++other) {
      if (other != first && can_run(other, kind)) of_kernels.kernels.push_back({other, kCandidates[other].name});
    }
    return of_kernels;
  });
  if (number <= kLast && can_run(number, kind)) measured[static_cast<size_t>(kind)] = number;
}

void force_attention(const std::string& name) {
  forced = nullptr;
  for (const Candidate& candidate : kCandidates) {
    if (candidate.name == name) forced = &candidate;
  }
  TORCH_CHECK_VALUE(name.empty() || forced.load(), "webgpu: there is no kernel of attention named ", name);
}

}  // namespace torch_webgpu
