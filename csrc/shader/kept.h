// Rows that are kept in registers from the walk that loads them to the walk that writes, on software adapters, where a
// load costs hundreds of instructions and code that is written out more than a few times outgrows the caches.
//
// Registers have no index, so blocks of two quads a lane are reached by branches. A family's file defines Known, what
// the results of a row depend on, and the functions that are named below.
#pragma once
#include <string>
#include <vector>

#include "shader/source.h"

namespace torch_webgpu {

// How rows are kept: in so many blocks, or not at all. That is part of a kernel's key.
struct Keep {
  uint8_t blocks : 7;
  uint8_t cut : 1;  // the last block is not full
};

// Rows that are too long are not kept, nor where the adapter has no use for it.
inline Keep keep_of(const Target& target, int64_t elements) {
  constexpr int64_t kMostBlocks = 16;
  const int64_t block = int64_t{8} * target.workgroup;
  if (!target.software || target.subgroup != target.workgroup || elements > kMostBlocks * block) return {};
  return {static_cast<uint8_t>((elements + block - 1) / block), elements % block != 0};
}

struct KeptValue {
  std::string name;
  std::string absent;  // expression for an absent operand; empty if present
  std::string type = "Pair";
};

// The code that all kernels with rows in registers share.
void use_kept(ShaderSource& source, Keep keep);
// keep_<group>(block, values...)
void print_keep(ShaderSource& source, Keep keep, const std::string& group, const std::vector<KeptValue>& values);
// fold_kept(known) -> Sums: no_sums(), then fold(sums, known, block, values...) for all blocks in turn
void print_fold_kept(ShaderSource& source, Keep keep, const std::vector<KeptValue>& values);
// result_kept(block, known) -> Pair: result_pair(known, values...)
void print_result_kept(ShaderSource& source, Keep keep, const std::vector<KeptValue>& values);

}  // namespace torch_webgpu
