// Gradients of scaled_dot_product_attention. Probabilities are computed again from the log-sum-exp of the forward.
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>

#include <array>

#include "families/launch.h"
#include "ops/attention/attention.h"
#include "ops/native.h"

namespace torch_webgpu {
namespace {

using Kind = AttentionKind;
using Operand = AttentionOperand;
using Gradients = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

Gradients attention_backward(const at::Tensor& grad, const at::Tensor& query, const at::Tensor& key,
                             const at::Tensor& value, const at::Tensor& attn_bias, std::array<bool, 4> wanted,
                             const at::Tensor& out, const at::Tensor& logsumexp, const at::Tensor&, const at::Tensor&,
                             int64_t, int64_t, double dropout_p, bool is_causal, const at::Tensor& seed,
                             const at::Tensor& offset, std::optional<double> scale) {
  Attention sizes(query, key, value, dropout_p, is_causal, scale);
  if (dropout_p > 0) {
    sizes.seed = static_cast<uint64_t>(seed.item<int64_t>());
    sizes.counter = static_cast<uint64_t>(offset.item<int64_t>());
  }
  const bool has_mask = attn_bias.defined();
  const bool wants_mask = wanted[3] && has_mask;
  if (!grad.defined() || key.numel() == 0 || value.numel() == 0 || query.numel() == 0) {
    return {at::zeros_like(query), at::zeros_like(key), at::zeros_like(value),
            wants_mask ? at::zeros_like(attn_bias) : at::Tensor()};
  }
  const at::Tensor log_sum = flat_of(logsumexp), delta = at::empty_like(log_sum);
  const at::Tensor mask =
      has_mask ? attn_bias.expand({sizes.batches, sizes.heads, sizes.queries, sizes.keys}) : at::Tensor();
  Gradients gradients{at::empty_like(query), at::Tensor(), at::Tensor(), at::Tensor()};
  sizes.launch(Kind::backward_query, {{Operand::query, query},
                                      {Operand::key, key},
                                      {Operand::value, value},
                                      {Operand::grad, grad},
                                      {Operand::out, out},
                                      {Operand::first, std::get<0>(gradients)},
                                      {Operand::mask, mask},
                                      {Operand::log_sum, log_sum},
                                      {Operand::delta, delta}});
  if (wanted[1] || wanted[2]) {
    std::get<1>(gradients) = at::empty_like(key);
    std::get<2>(gradients) = at::empty_like(value);
    sizes.launch(Kind::backward_key, {{Operand::query, query},
                                      {Operand::key, key},
                                      {Operand::value, value},
                                      {Operand::grad, grad},
                                      {Operand::first, std::get<1>(gradients)},
                                      {Operand::second, std::get<2>(gradients)},
                                      {Operand::mask, mask},
                                      {Operand::log_sum, log_sum},
                                      {Operand::delta, delta}});
  }
  if (wants_mask) {
    const at::Tensor sums = empty_tensor(Attention::of_four_dims(attn_bias).sizes(), {}, at::kFloat);
    sizes.launch(Kind::backward_mask, {{Operand::query, query},
                                       {Operand::key, key},
                                       {Operand::value, value},
                                       {Operand::grad, grad},
                                       {Operand::mask, mask},
                                       {Operand::log_sum, log_sum},
                                       {Operand::delta, delta},
                                       {Operand::mask_grad, sums}});
    std::get<3>(gradients) = at::empty_like(attn_bias).copy_(sums.view(attn_bias.sizes()));
  }
  return gradients;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  native<&attention_backward>(library, "_scaled_dot_product_fused_attention_overrideable_backward");
}

}  // namespace
}  // namespace torch_webgpu
