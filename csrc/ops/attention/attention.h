// The sizes of a call of attention and the launcher that its kernels share.
#pragma once
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "families/choices.h"
#include "families/matmul.h"
#include "runtime/launch.h"
#include "shader/attention.h"

namespace torch_webgpu {

// What a kernel of flex_attention takes beside the operands. Lists of a block mask, perhaps none, are the number and
// the indices of partial blocks, then of whole ones, as int32.
struct Flex {
  const ScoreText& text;
  std::vector<at::Tensor> lists;
  at::Tensor packed;                 // the lists one behind the other where the text binds them as one, or undefined
  std::vector<at::Tensor> captured;  // what the text binds behind the lists
  std::vector<uint32_t> words;
  int64_t first_packed = 0;  // where the first list lies in `packed`
};

// Tensors are (batch, head, query or key, element). Several query heads may share a head of keys and values.
struct Attention {
  Attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, double dropout, bool causal,
            std::optional<double> scale);

  int64_t batches, heads, kv_heads, queries, keys, head_size, value_size;
  double scale, dropout;
  bool causal;
  uint64_t seed = 0, counter = 0;                 // of the random numbers for dropout
  std::optional<uint32_t> random_source;          // as in Launch, if a replay takes other random numbers
  int64_t parts = 1, part_keys, part_stride = 0;  // each part of the keys is computed by itself
  double log_unit = 1;                            // of the log-sum-exp that is stored, or loaded
  const Flex* flex = nullptr;
  const EpilogueCall* epilogue = nullptr;  // takes the elements of `out`, which is a layout without memory then
  bool in_quads = false;                   // query, key, value and out, as AttentionSpec::quads
  bool wants_most = false;                 // the largest scores of the forward
  int64_t query_block, key_block;          // of a block mask
  int64_t strip_heads;                     // how many heads share a strip, see wgsl/attention/attention_flex.wgsl

  int64_t group() const { return heads / kv_heads; }
  int64_t quads_of_head() const { return (std::max(head_size, value_size) + 3) / 4; }  // or of a value, if wider
  int64_t random_blocks() const { return batches * heads * queries * ((keys + 31) / 32) * 8; }

  // Gives each head a strip of its own where its queries fill blocks: then the longest rows can start first.
  void set_strips();

  // Whether these tensors take so many pages that a kernel of `operands` has no bindings for them: the batch is halved.
  bool wants_halves(at::TensorList tensors, uint32_t operands) const;
  // The same of `count` samples from `begin` on.
  Attention narrow(int64_t begin, int64_t count) const;

  // The mask with four dimensions: missing ones have size one.
  static at::Tensor of_four_dims(const at::Tensor& mask);

  // The operands that the kind reads and writes; an undefined one is left out.
  using Operands = c10::ArrayRef<std::pair<AttentionOperand, at::Tensor>>;
  void launch(AttentionKind kind, Operands operands) const;
  // The same of a backward, with the kernel that was measured, if any. The first operand's dtype is the call's.
  void launch_measured(AttentionKind kind, Operands operands);

  // The kernel, how many rows a workgroup takes at once, and the quads of each that one of eight lanes sums.
  struct Block {
    AttentionKernel kernel;
    int64_t rows, columns;
  };
  Block block_of(AttentionKind kind) const;
  int64_t blocks_of(AttentionKind kind) const { return blocks_of(kind, block_of(kind).rows); }  // in a strip
  int64_t strips_of(AttentionKind kind) const;

  // Takes the kernel that was measured for calls like this, if any. `contest` has operands like `query`, and runs them.
  void choose_by_time(AttentionKind kind, const at::Tensor& query, bool has_mask, c10::function_ref<Contest()> contest);

 private:
  std::array<int64_t, static_cast<size_t>(AttentionKind::backward_mask) + 1>
      measured;  // the number of each kind's kernel, or kUnmeasured
  static constexpr int64_t kUnmeasured = -1;

  bool can_run(int64_t number, AttentionKind kind) const;  // a kernel, by its place in the table
  int64_t first_of_table(AttentionKind kind) const;
  int64_t number_of(AttentionKind kind) const;
  Block block_by_lanes(AttentionKind kind) const;
  int64_t blocks_of(AttentionKind kind, int64_t rows) const;
  int64_t query_blocks() const { return (queries + query_block - 1) / query_block; }
  int64_t key_blocks() const { return (keys + key_block - 1) / key_block; }
  int64_t rows_of(AttentionKind kind) const;  // in a strip, at most
  void bind_flex(Launch& launch, Operands operands) const;
};

// Whether rows are of whole quads that lie side by side, as AttentionSpec::quads.
bool are_of_quads(at::TensorList tensors);
// Whether lanes exchange through subgroups of eight, as suits software adapters alone.
bool exchanges_by_subgroup();

// For tests: GPUs take this kernel wherever it can compute the call. An empty name leaves the choice.
void force_attention(const std::string& name);

// Kernels index numbers per query from the start of their buffer, so a view is copied.
inline at::Tensor flat_of(const at::Tensor& tensor) {
  return tensor.is_contiguous() && tensor.storage_offset() == 0 ? tensor : tensor.clone(at::MemoryFormat::Contiguous);
}

// The kernels of the forward: one, or one for parts of the keys and one that joins them.
void attention_forward(Attention sizes, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                       const at::Tensor& mask, const at::Tensor& out, const at::Tensor& log_sum,
                       const at::Tensor& most = {});

// The forward whose elements `call`'s text takes: of a result of query's sizes, and value's size of a head, that lies
// dense with its dimensions in `order`. No operand needs pages.
struct AttentionInto {
  at::Tensor query, key, value, mask, log_sum;  // the last two may be undefined
  std::array<int64_t, 4> order;
  bool causal;
  std::optional<double> scale;
};
void attention_into(const EpilogueCall& call, const AttentionInto& given);

}  // namespace torch_webgpu
