// Keys: unsigned numbers in the order of a dtype's values, and the programs that sort by them.
#pragma once
#include <ATen/core/Tensor.h>

#include "families/lines.h"
#include "families/program.h"
#include "families/tensor.h"

namespace torch_webgpu {

constexpr uint16_t kRadixLanes = 256;  // of a workgroup that sorts a block by a digit

struct KeyRow {
  Program all;                           // the keys of all elements
  Program first;                         // of the first few of each block, with their indices
  Program few;                           // sorts lines of a few elements
  Program group, wide_group;             // sorts what fits in workgroup memory, with more lanes
  Program merge;                         // sorts by one invocation
  Program select;                        // the first of each block, in no order, on GPUs
  Program varied, count, offsets, move;  // a radix sort of long rows on GPUs
};

const KeyRow& key_row_of(at::ScalarType dtype);

// How the elements of a dtype become keys.
struct KeyKind {
  KeyKind(at::ScalarType dtype, bool descending)
      : row(key_row_of(dtype)),
        compute(dtype == at::kBool ? at::kByte : dtype),
        words(dtype == at::kLong ? 2 : 1),
        bits(8 * static_cast<int64_t>(c10::elementSize(dtype))),
        variant(static_cast<uint32_t>(2 * words + (descending ? 1 : 0))) {}
  const KeyRow& row;
  const at::ScalarType compute;
  const int64_t words, bits;
  const uint32_t variant;
};

inline at::Tensor words_of(int64_t count) { return empty_tensor({count}, {}, at::kInt); }

}  // namespace torch_webgpu
