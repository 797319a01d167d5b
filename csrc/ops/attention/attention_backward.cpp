// Gradients of scaled_dot_product_attention. Probabilities are computed again from the log-sum-exp of the forward.
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros_like.h>

#include <array>

#include "device/recorded_call.h"
#include "families/launch.h"
#include "ops/attention/attention.h"
#include "ops/native.h"

namespace torch_webgpu {
namespace {

using Kind = AttentionKind;
using Operand = AttentionOperand;
uint32_t most_bindings() { return runtime().device.limits.maxStorageBuffersPerShaderStage; }

using Gradients = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

Gradients attention_backward(const at::Tensor& grad, const at::Tensor& query, const at::Tensor& key,
                             const at::Tensor& value, const at::Tensor& attn_bias, std::array<bool, 4> wanted,
                             const at::Tensor& out, const at::Tensor& logsumexp, const at::Tensor& first_queries,
                             const at::Tensor& first_keys, int64_t most_queries, int64_t most_keys, double dropout_p,
                             bool is_causal, const at::Tensor& seed, const at::Tensor& offset,
                             std::optional<double> scale);

// Two halves of the batch, put together again.
Gradients backward_halves(const Attention& sizes, const at::Tensor& grad, const at::Tensor& query,
                          const at::Tensor& key, const at::Tensor& value, const at::Tensor& bias,
                          std::array<bool, 4> wanted, const at::Tensor& out, const at::Tensor& log_sum,
                          const at::Tensor& seed, std::optional<double> scale) {
  const int64_t half = (sizes.batches + 1) / 2;
  const bool own_bias = bias.defined() && bias.dim() == 4 && bias.size(0) > 1;
  Gradients halves[2];
  for (const int64_t i : {0, 1}) {
    const int64_t begin = i ? half : 0, count = i ? sizes.batches - half : half;
    const auto some = [&](const at::Tensor& tensor) { return tensor.narrow(0, begin, count); };
    const at::Tensor counter = at::scalar_tensor(static_cast<int64_t>(sizes.narrow(begin, count).counter), at::kLong);
    halves[i] = attention_backward(some(grad), some(query), some(key), some(value), own_bias ? some(bias) : bias,
                                   wanted, some(out), some(log_sum), {}, {}, sizes.queries, sizes.keys, sizes.dropout,
                                   sizes.causal, seed, counter, scale);
  }
  const auto joined = [](const at::Tensor& one, const at::Tensor& other) {
    return one.defined() ? at::cat({one, other}) : one;
  };
  const auto& [a, b, c, d] = halves[0];
  const auto& [e, f, g, h] = halves[1];
  return {joined(a, e), joined(b, f), joined(c, g), own_bias || !d.defined() ? joined(d, h) : d.add(h)};
}

Gradients attention_backward(const at::Tensor& grad, const at::Tensor& query, const at::Tensor& key,
                             const at::Tensor& value, const at::Tensor& attn_bias, std::array<bool, 4> wanted,
                             const at::Tensor& out, const at::Tensor& logsumexp, const at::Tensor&, const at::Tensor&,
                             int64_t, int64_t, double dropout_p, bool is_causal, const at::Tensor& seed,
                             const at::Tensor& offset, std::optional<double> scale) {
  Attention sizes(query, key, value, dropout_p, is_causal, scale);
  sizes.set_strips();
  sizes.in_quads = are_of_quads({query, key, value, grad.defined() ? grad : out, out});
  if (dropout_p > 0) {
    sizes.seed = static_cast<uint64_t>(seed.item<int64_t>());
    sizes.counter = static_cast<uint64_t>(offset.item<int64_t>());
    sizes.random_source = random_source_of(seed, offset);
  }
  const bool has_mask = attn_bias.defined();
  const bool wants_mask = wanted[3] && has_mask;
  if (!grad.defined() || key.numel() == 0 || value.numel() == 0 || query.numel() == 0) {
    return {at::zeros_like(query), at::zeros_like(key), at::zeros_like(value),
            wants_mask ? at::zeros_like(attn_bias) : at::Tensor()};
  }
  if (sizes.wants_halves({query, key, value, grad, out, query, has_mask ? attn_bias : at::Tensor()}, 9)) {
    return backward_halves(sizes, grad, query, key, value, attn_bias, wanted, out, logsumexp, seed, scale);
  }
  at::Tensor log_sum = flat_of(logsumexp), delta;
  if (constexpr uint32_t kBindings = 9; has_mask && most_bindings() < kBindings) {
    // Together they take one binding, which leaves one for the mask.
    const at::Tensor both = empty_tensor({2, sizes.batches, sizes.heads, sizes.queries}, {}, at::kFloat);
    both[0].copy_(log_sum);
    log_sum = both[0];
    delta = both[1];
  } else {
    delta = at::empty_like(log_sum);
  }
  const at::Tensor mask =
      has_mask ? attn_bias.expand({sizes.batches, sizes.heads, sizes.queries, sizes.keys}) : at::Tensor();
  Gradients gradients{at::empty_like(query), at::Tensor(), at::Tensor(), at::Tensor()};
  sizes.launch_measured(Kind::backward_query, {{Operand::query, query},
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
    sizes.launch_measured(Kind::backward_key, {{Operand::query, query},
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
