#include "ops/attention/flex.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "families/launch.h"

namespace torch_webgpu {
namespace {

using Kind = AttentionKind;
using Operand = AttentionOperand;

constexpr double kLog2 = 0.693147180559945309417;

// The kernels find a batch that all share by its stride.
at::Tensor in_batches(const at::Tensor& tensor, int64_t batches) {
  return tensor.size(0) == batches ? tensor : tensor.expand({batches, -1, -1, -1});
}

// Whether the heads that share a key head may share a walk too: one list must serve all of their queries.
bool shares_walk(const Attention& sizes, const Flex& flex) {
  const bool of_all_heads =
      std::all_of(flex.lists.begin(), flex.lists.end(), [](const at::Tensor& list) { return list.size(1) == 1; });
  return of_all_heads && sizes.queries <= sizes.query_block;
}

Attention sizes_of(const Flex& flex, const FlexSizes& given, const at::Tensor& query, const at::Tensor& key,
                   const at::Tensor& value) {
  Attention sizes(query, key, value, 0, false, given.scale);
  const bool listed = !flex.lists.empty();
  sizes.strip_heads = sizes.group();
  sizes.query_block = listed ? given.query_block : sizes.queries;
  sizes.key_block = listed ? given.key_block : sizes.keys;
  if (!shares_walk(sizes, flex)) sizes.strip_heads = 1;
  sizes.query_block = std::min(sizes.query_block, sizes.queries);
  sizes.key_block = std::min(sizes.key_block, sizes.keys);
  return sizes;
}

void check(const Flex& flex, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  const std::string& label = flex.text.label;
  TORCH_CHECK_VALUE(query.dim() == 4 && key.dim() == 4 && value.dim() == 4, label,
                    ": query, key and value have four dimensions");
  for (const at::Tensor& list : flex.lists) {
    TORCH_CHECK_VALUE(list.scalar_type() == at::kInt && list.dim() >= 3, label, ": lists of blocks are int32");
  }
}

}  // namespace

const ScoreText& score_text(std::string label, std::string text, std::vector<std::string> files, uint32_t bindings) {
  static std::mutex mutex;
  static auto* texts = new std::unordered_map<std::string, std::unique_ptr<ScoreText>>;
  const std::lock_guard lock(mutex);
  auto& entry = (*texts)[text];
  if (!entry) {
    TORCH_CHECK(texts->size() <= std::numeric_limits<uint16_t>::max(),
                "webgpu: flex_attention: a process has at most 65535 different functions of scores");
    entry = std::make_unique<ScoreText>(
        ScoreText{std::move(label), std::move(text), std::move(files), bindings, static_cast<uint16_t>(texts->size())});
  }
  return *entry;
}

void flex_forward(const Flex& flex, const FlexSizes& given, const at::Tensor& query, const at::Tensor& key,
                  const at::Tensor& value, const at::Tensor& out, const at::Tensor& log_sum, const at::Tensor& most) {
  check(flex, query, key, value);
  if (query.numel() == 0) return;
  Attention sizes = sizes_of(flex, given, query, key, value);
  sizes.flex = &flex;
  sizes.log_unit = 1 / kLog2;
  attention_forward(sizes, query, in_batches(key, sizes.batches), in_batches(value, sizes.batches), {}, out, log_sum,
                    most);
}

void flex_backward(const Flex& flex, const Flex& of_keys, const FlexSizes& given, const at::Tensor& query,
                   const at::Tensor& key, const at::Tensor& value, const at::Tensor& out, const at::Tensor& log_sum,
                   const at::Tensor& grad, const at::Tensor& log_sum_grad, const FlexGradients& gradients) {
  check(flex, query, key, value);
  if (query.numel() == 0) return;
  Attention sizes = sizes_of(flex, given, query, key, value);
  const at::Tensor keys = in_batches(key, sizes.batches), values = in_batches(value, sizes.batches),
                   slope = grad.defined() ? grad : at::zeros_like(out), flat_sum = flat_of(log_sum),
                   delta = at::empty_like(flat_sum),
                   flat_grad = log_sum_grad.defined() ? flat_of(log_sum_grad) : log_sum_grad;
  sizes.log_unit = kLog2;
  sizes.in_quads = are_of_quads({query, keys, values, slope, out});
  sizes.flex = &flex;
  sizes.launch(Kind::backward_query, {{Operand::query, query},
                                      {Operand::key, keys},
                                      {Operand::value, values},
                                      {Operand::grad, slope},
                                      {Operand::out, out},
                                      {Operand::first, gradients.query},
                                      {Operand::log_sum, flat_sum},
                                      {Operand::delta, delta},
                                      {Operand::part_log_sum, flat_grad}});
  sizes.flex = &of_keys;
  sizes.launch(Kind::backward_key, {{Operand::query, query},
                                    {Operand::key, keys},
                                    {Operand::value, values},
                                    {Operand::grad, slope},
                                    {Operand::first, gradients.key},
                                    {Operand::second, gradients.value},
                                    {Operand::log_sum, flat_sum},
                                    {Operand::delta, delta}});
}

}  // namespace torch_webgpu
