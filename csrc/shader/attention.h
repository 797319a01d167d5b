// Prints the kernels of scaled dot product attention and its gradients: heads for the files wgsl/attention*.wgsl.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "shader/dtype.h"
#include "shader/epilogue.h"
#include "shader/source.h"

namespace torch_webgpu {

// How a kernel works: lanes load what they multiply; tiles are staged in workgroup memory (shader/attention_staged.h);
// or each key is loaded once for a few queries (shader/attention_decode.h), and the parts are joined by workgroups.
enum class AttentionKernel : uint8_t { lanes, staged, decode };
enum class AttentionKind : uint8_t { forward, combine, backward_query, backward_key, backward_mask };

// Operands before log_sum have strides by batch, head, row and element; the rest are float32 and contiguous, at offset
// 0 but for delta.
enum class AttentionOperand : uint8_t {
  query,
  key,
  value,
  grad,
  out,
  first,   // the gradient of query or key
  second,  // the gradient of value
  mask,
  log_sum,
  delta,
  part_log_sum,  // of each part of the keys; in gradients of flex_attention that of log_sum
  mask_grad,
  most  // the largest score of each query
};
constexpr uint32_t kAttentionWalked = 8, kAttentionOperands = 13;

// What flex_attention adds, as WGSL: fn flex_score(score: f32, b: i32, h: i32, m: i32, n: i32) -> f32, fn flex_visible
// of the four indices, and for gradients fn flex_slope, which takes the gradient of the score last. Behind these,
// `const LISTS`, the number of lists of a block mask (0, 2 or 4), and fn load_list(list: u32, i: u32) -> u32. The text
// declares its bindings, which come before the kernel's own. It lives as long as the process.
struct ScoreText {
  std::string label, text;
  std::vector<std::string> files;  // below wgsl/, that the text builds on
  uint32_t bindings;
  uint16_t id;  // for the key; from 1
};

struct AttentionSpec {
  struct {
    uint8_t dtype : 4;  // DType
    uint8_t binding : 4;
  } operands[kAttentionOperands];
  uint8_t kind;       // AttentionKind
  uint8_t block;      // rows per workgroup
  uint8_t columns;    // quads of a row of sums in each of eight lanes
  uint8_t quads : 1;  // whatever is walked is of whole, aligned quads, which lie side by side
  uint8_t dropout : 1;
  uint8_t by_subgroup : 1;  // lanes exchange through a subgroup of eight, not through workgroup memory
  uint8_t ragged : 1;       // a head or a value is not a multiple of 16 elements
  uint8_t kernel : 4;       // AttentionKernel
  uint8_t head_columns;     // of staged kernels: as `columns`, of a head and of a value; of decoding: quads of a head
  uint8_t value_columns;
  uint8_t unused;
  uint16_t scores;    // a ScoreText's id, or 0
  uint16_t epilogue;  // an EpilogueText's id, or 0: it takes what the forward would store to `out`
};
static_assert(sizeof(AttentionSpec) == 24);

constexpr uint32_t kAttentionAbsent = 15;  // the binding of an operand that is left out

// Where things are in the parameters, in words. With quads, offsets and strides are in quads.
struct AttentionParams {
  static constexpr uint32_t kTasks = 0, kBlocks = 1, kKvHeads = 2, kGroup = 3, kQueries = 4, kKeys = 5, kHeadSize = 6,
                            kValueSize = 7, kScale = 8, kKeepScale = 9, kCausal = 10, kDropBelow = 11, kRandom = 12,
                            kParts = 16, kPartKeys = 17, kPartStride = 18, kMaskSizes = kParts, kChunk = 20,
                            kBatches = 21, kLogUnit = 22, kStripHeads = 23, kPlaces = 24,
                            kElementStrides = kPlaces + 4 * kAttentionWalked,
                            kDeltaPlace = kElementStrides + kAttentionWalked, kWords = kDeltaPlace + 4;
  // Of flex_attention alone. A list has an offset and strides by batch, head and row of blocks. Behind them are the
  // offsets of what the text binds, and its own words.
  static constexpr uint32_t kQueryBlocks = kWords, kQueryBlock = kWords + 1, kKeyBlocks = kWords + 2,
                            kKeyBlock = kWords + 3, kLists = kWords + 4, kTextWords = kLists + 16;
  // Of an epilogue, whose bindings come first, too.
  static constexpr uint32_t kEpilogueWords = kWords;
};

// The texts whose ids the spec has.
struct AttentionTexts {
  const ScoreText* scores = nullptr;
  const EpilogueText* epilogue = nullptr;
};
std::string print_attention(const AttentionSpec& spec, const Target& target, Pages pages = {},
                            const AttentionTexts& texts = {});
std::string label_attention(const AttentionSpec& spec, const AttentionTexts& texts = {});

}  // namespace torch_webgpu
