// The sizes of a call of attention and the launcher that its kernels share.
#pragma once
#include <ATen/core/Tensor.h>

#include <initializer_list>
#include <optional>
#include <utility>

#include "shader/attention.h"

namespace torch_webgpu {

// Tensors are (batch, head, query or key, element). Several query heads may share a head of keys and values.
struct Attention {
  Attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, double dropout, bool causal,
            std::optional<double> scale);

  int64_t batches, heads, kv_heads, queries, keys, head_size, value_size;
  double scale, dropout;
  bool causal;
  uint64_t seed = 0, counter = 0;                 // of the random numbers for dropout
  int64_t parts = 1, part_keys, part_stride = 0;  // each part of the keys is computed by itself

  int64_t group() const { return heads / kv_heads; }
  int64_t random_blocks() const { return batches * heads * queries * ((keys + 31) / 32) * 8; }

  // The mask with four dimensions: missing ones have size one.
  static at::Tensor of_four_dims(const at::Tensor& mask);

  // The operands that the kind reads and writes; an undefined one is left out.
  using Operands = std::initializer_list<std::pair<AttentionOperand, at::Tensor>>;
  void launch(AttentionKind kind, Operands operands) const;

  // How many rows a workgroup takes at once, and the quads of each that one of eight lanes sums.
  struct Block {
    int64_t rows, columns;
  };
  Block block_of(AttentionKind kind) const;
  int64_t blocks_of(AttentionKind kind) const;
};

}  // namespace torch_webgpu
