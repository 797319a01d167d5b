// torch.nn.attention.flex_attention: the kernels of attention with functions of the user's.
#pragma once
#include <tuple>

#include "ops/attention/attention.h"

namespace torch_webgpu {

// Functions of one text; it lives as long as the process.
const ScoreText& score_text(std::string label, std::string text, std::vector<std::string> files, uint32_t bindings);

struct FlexSizes {
  int64_t query_block, key_block;  // of the block mask
  double scale;
};

// `out`, and the log-sum-exp to the base of two; the largest scores, to that base too, where they are wanted.
void flex_forward(const Flex& flex, const FlexSizes& sizes, const at::Tensor& query, const at::Tensor& key,
                  const at::Tensor& value, const at::Tensor& out, const at::Tensor& log_sum, const at::Tensor& most);

// Gradients of query, key and value. `flex` has the lists of the keys that a block of queries sees, and `of_keys` those
// of the queries that see a block of keys. A gradient that is undefined is zero.
struct FlexGradients {
  at::Tensor query, key, value;
};
void flex_backward(const Flex& flex, const Flex& of_keys, const FlexSizes& sizes, const at::Tensor& query,
                   const at::Tensor& key, const at::Tensor& value, const at::Tensor& out, const at::Tensor& log_sum,
                   const at::Tensor& grad, const at::Tensor& log_sum_grad, const FlexGradients& gradients);

}  // namespace torch_webgpu
