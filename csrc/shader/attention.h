// Prints the kernels of scaled dot product attention and its gradients: heads for the files wgsl/attention*.wgsl.
#pragma once
#include <cstdint>
#include <string>

#include "shader/dtype.h"
#include "shader/source.h"

namespace torch_webgpu {

enum class AttentionKind : uint8_t { forward, combine, backward_query, backward_key, backward_mask };

// Those before log_sum are walked by batch, head, row and element; the rest are float32, contiguous, in whole buffers.
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
  part_log_sum,
  mask_grad
};
constexpr uint32_t kAttentionWalked = 8, kAttentionOperands = 12;

struct AttentionSpec {
  struct {
    uint8_t dtype : 4;  // DType
    uint8_t binding : 4;
  } operands[kAttentionOperands];
  uint8_t kind;     // AttentionKind
  uint8_t block;    // rows per workgroup
  uint8_t columns;  // quads of a row of sums in each of eight lanes
  uint8_t quads;    // whatever is walked is of whole, aligned quads, which lie side by side
  uint8_t dropout;
  uint8_t by_subgroup;  // lanes exchange through a subgroup of eight, not through workgroup memory
  uint8_t unused[6];
};
static_assert(sizeof(AttentionSpec) == 24);

constexpr uint32_t kAttentionAbsent = 15;  // the binding of an operand that is left out

// Where things are in the parameters, in words. With quads, offsets and strides are in quads.
struct AttentionParams {
  static constexpr uint32_t kTasks = 0, kBlocks = 1, kKvHeads = 2, kGroup = 3, kQueries = 4, kKeys = 5, kHeadSize = 6,
                            kValueSize = 7, kScale = 8, kKeepScale = 9, kCausal = 10, kDropBelow = 11, kRandom = 12,
                            kParts = 16, kPartKeys = 17, kPartStride = 18, kMaskSizes = kParts, kChunk = 20,
                            kBatches = 21, kPlaces = 24, kElementStrides = kPlaces + 4 * kAttentionWalked,
                            kWords = kElementStrides + kAttentionWalked;
};

std::string print_attention(const AttentionSpec& spec, const Target& target, Pages pages = {});
std::string label_attention(const AttentionSpec& spec);

}  // namespace torch_webgpu
