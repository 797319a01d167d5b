// Prints the kernels of attention for GPUs: a workgroup owns a block of rows, whose sums its lanes keep in registers,
// and walks over tiles of the other rows, which are staged in workgroup memory and so loaded once for the whole block.
#pragma once
#include <cstdint>
#include <string>

namespace torch_webgpu {

enum class AttentionKind : uint8_t;

constexpr uint32_t kStagedLaneRows = 4;  // rows of a block that eight lanes share
// What a workgroup keeps in WebGPU's least 16 KiB: a tile of 32 rows by 64 elements, and a weight for each of its rows
// and each of up to 64 rows of the block.
struct StagedAttention {
  AttentionKind kind;
  uint32_t rows;                         // of a block: 32 or 64
  uint32_t head_columns, value_columns;  // quads of a row of a head, and of a value, in each of eight lanes
  bool packed;                           // tiles are of float16, as in the buffer
  bool ragged;                           // a head or a value is not a multiple of 16 elements
  bool mask, flex, most, log_sum_grad;   // which of the optional parts the kernel has

  uint32_t lanes() const { return rows / kStagedLaneRows * 8; }
};

// Calls what the head declares for every kernel of attention (csrc/shader/attention.cpp), tile_<operand>(at, quad),
// which loads a Word: what a tile has for a quad, and wide(word).
std::string print_attention_staged(const StagedAttention& kernel);

}  // namespace torch_webgpu
