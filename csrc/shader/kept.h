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

constexpr uint32_t kKeptBlocks = 16;

// How rows of so many elements are kept.
enum class Keep : uint8_t {
  no,     // they are too long, or the adapter has no use for it
  whole,  // in whole blocks
  cut,    // the last block is not full
};
inline Keep keep_of(const Target& target, int64_t elements) {
  const int64_t block = 2 * 4 * int64_t{target.workgroup};
  if (!target.software || target.subgroup != target.workgroup || elements > kKeptBlocks * block) return Keep::no;
  return elements % block == 0 ? Keep::whole : Keep::cut;
}

struct KeptValue {
  std::string name;
  std::string absent;  // what stands for a value that is left out; empty where it is there
  std::string type = "Pair";
};

// What all kernels that keep rows share.
void use_kept(ShaderSource& source, Keep keep);
// keep_<group>(block, values...)
void print_keep(ShaderSource& source, const std::string& group, const std::vector<KeptValue>& values);
// fold_kept(blocks, known) -> Sums: no_sums(), then fold(sums, known, block, values...) for all blocks in turn
void print_fold_kept(ShaderSource& source, const std::vector<KeptValue>& values);
// result_kept(block, known) -> Pair: result_pair(known, values...)
void print_result_kept(ShaderSource& source, const std::vector<KeptValue>& values);

}  // namespace torch_webgpu
