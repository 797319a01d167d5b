// The fast paths of nn.MultiheadAttention and nn.TransformerEncoderLayer in eval mode, composed of other ops.
#include <ATen/ops/_scaled_dot_product_attention_math.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <torch/library.h>

#include "ops/native.h"

namespace torch_webgpu {
namespace {

using OptionalTensor = std::optional<at::Tensor>;

// The three projections; one product computes them all if query, key and value are the same tensor.
std::array<at::Tensor, 3> project(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                  const at::Tensor& weight, const at::Tensor& bias) {
  if (query.is_same(key) && key.is_same(value)) {
    const auto parts = at::linear(query, weight, bias).chunk(3, 2);
    return {parts[0], parts[1], parts[2]};
  }
  const auto weights = weight.chunk(3, 0), biases = bias.chunk(3, 0);
  return {at::linear(query, weights[0], biases[0]), at::linear(key, weights[1], biases[1]),
          at::linear(value, weights[2], biases[2])};
}

// Inverts a mask (true = hidden) to true = visible. Mask types: queries x keys, keys alone, or all four dimensions.
OptionalTensor allowed(const OptionalTensor& mask, std::optional<int64_t> type) {
  if (!mask || !mask->defined()) return std::nullopt;
  TORCH_CHECK(type.has_value(), "Mask Type should be defined");
  TORCH_CHECK(*type == 0 || *type == 1 || *type == 2,
              "Mask Type should be 0 (src_mask), 1 (src_key_padding_mask), or 2 (default_mask)");
  const at::Tensor open = mask->to(at::kBool).logical_not();
  return *type == 1 ? open.view({open.size(0), 1, 1, open.size(1)}) : open;
}

std::tuple<at::Tensor, at::Tensor> multi_head_attention(const at::Tensor& query, const at::Tensor& key,
                                                        const at::Tensor& value, int64_t embed_dim, int64_t num_head,
                                                        const at::Tensor& qkv_weight, const at::Tensor& qkv_bias,
                                                        const at::Tensor& proj_weight, const at::Tensor& proj_bias,
                                                        const OptionalTensor& mask, bool need_weights,
                                                        bool average_attn_weights, std::optional<int64_t> mask_type) {
  const auto check_dim = [](const char* name, const at::Tensor& tensor, int64_t dim) {
    TORCH_CHECK(tensor.dim() == dim, "expected ", dim, "-D `", name, "`, got ", tensor.dim(), "-D tensor");
  };
  check_dim("query", query, 3);
  TORCH_CHECK(query.size(2) == embed_dim, "passed-in embed_dim ", embed_dim, " didn't match last dim of query ",
              query.size(2));
  check_dim("key", key, 3);
  check_dim("value", value, 3);
  TORCH_CHECK(query.sizes() == key.sizes() && key.sizes() == value.sizes(),
              "expected `query`/`key`/`value` shapes to match");
  check_dim("qkv_weight", qkv_weight, 2);
  TORCH_CHECK(embed_dim * 3 == qkv_weight.size(0), "expected `qkv_weight` first dim to be 3x embed_dim");
  TORCH_CHECK(embed_dim == qkv_weight.size(1), "expected `qkv_weight` second dim to be embed_Dim");
  check_dim("qkv_bias", qkv_bias, 1);
  TORCH_CHECK(qkv_bias.size(0) == 3 * embed_dim, "expected `qkv_bias` first dim and first dim of query to be equal");
  TORCH_CHECK(embed_dim % num_head == 0, "`embed_dim` must divide evenly by `num_heads`");
  if (query.numel() == 0) return {at::empty_like(query), at::Tensor()};

  auto heads = project(query, key, value, qkv_weight, qkv_bias);
  for (at::Tensor& part : heads) {
    part = part.view({query.size(0), query.size(1), num_head, embed_dim / num_head}).transpose(1, 2);
  }
  const auto& [q, k, v] = heads;
  const OptionalTensor open = allowed(mask, mask_type);
  at::Tensor context, weights;
  if (need_weights) {
    std::tie(context, weights) = at::_scaled_dot_product_attention_math(q, k, v, open);
    if (average_attn_weights) weights = weights.sum(1).div_(num_head);
  } else {
    context = at::scaled_dot_product_attention(q, k, v, open);
  }
  return {at::linear(context.transpose(1, 2).reshape(query.sizes()), proj_weight, proj_bias), weights};
}

at::Tensor encoder_layer(const at::Tensor& src, int64_t embed_dim, int64_t num_heads, const at::Tensor& qkv_weight,
                         const at::Tensor& qkv_bias, const at::Tensor& proj_weight, const at::Tensor& proj_bias,
                         bool use_gelu, bool norm_first, double eps, const at::Tensor& norm_weight_1,
                         const at::Tensor& norm_bias_1, const at::Tensor& norm_weight_2, const at::Tensor& norm_bias_2,
                         const at::Tensor& ffn_weight_1, const at::Tensor& ffn_bias_1, const at::Tensor& ffn_weight_2,
                         const at::Tensor& ffn_bias_2, const OptionalTensor& mask, std::optional<int64_t> mask_type) {
  const auto normed = [&](const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
    return at::layer_norm(x, {embed_dim}, weight, bias, eps, false);
  };
  at::Tensor x = norm_first ? normed(src, norm_weight_1, norm_bias_1) : src;
  x = std::get<0>(multi_head_attention(x, x, x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias,
                                       mask, false, true, mask_type));
  x = x.add(src);
  if (!norm_first) x = normed(x, norm_weight_1, norm_bias_1);
  at::Tensor y = norm_first ? normed(x, norm_weight_2, norm_bias_2) : x;
  y = at::linear(y, ffn_weight_1, ffn_bias_1);
  y = at::linear(use_gelu ? at::gelu(y) : at::relu(y), ffn_weight_2, ffn_bias_2).add(x);
  return norm_first ? y : normed(y, norm_weight_2, norm_bias_2);
}

// False makes nn.TransformerEncoder keep its padding: this device has no nested tensors.
bool is_left_aligned(const at::Tensor&, const at::Tensor&) { return false; }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  native<&multi_head_attention>(library, "_native_multi_head_attention");
  native<&encoder_layer>(library, "_transformer_encoder_layer_fwd");
  native<&is_left_aligned>(library, "_nested_tensor_from_mask_left_aligned");
}

}  // namespace
}  // namespace torch_webgpu
