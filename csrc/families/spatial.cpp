#include "families/spatial.h"

#include <algorithm>

namespace torch_webgpu {

at::Tensor five_dims(at::Tensor tensor, int64_t spatial) {
  if (tensor.dim() == spatial + 1) tensor = tensor.unsqueeze(0);
  for (; spatial < 3; ++spatial) tensor = tensor.unsqueeze(2);
  return tensor;
}

Spatial& Spatial::operand(const at::Tensor& tensor, Reach reach, bool bits) {
  operands_.push_back({tensor, reach, bits});
  return *this;
}

Spatial& Spatial::word(int64_t value) {
  words_.push_back(static_cast<uint32_t>(value));
  return *this;
}

Spatial& Spatial::number(double value) {
  const auto single = static_cast<float>(value);
  uint32_t bits = 0;
  std::memcpy(&bits, &single, sizeof(bits));
  words_.push_back(bits);
  return *this;
}

void Spatial::run() {
  const at::Tensor& out = operands_[0].tensor;
  const bool innermost = out.size(1) > 1 && out.size(4) > 1 && out.stride(1) < out.stride(4);
  // Batch and channels are walked as one where every operand allows it: a division less.
  const bool joined = !innermost && std::all_of(operands_.begin(), operands_.end(), [](const Operand& operand) {
    return operand.tensor.stride(0) == operand.tensor.stride(1) * operand.tensor.size(1);
  });
  Indexed launch(innermost ? row_.channels : row_.planes, compute_);
  const auto order = [&](at::IntArrayRef of, bool sizes) -> c10::SmallVector<int64_t, 5> {
    if (innermost) return {of[0], of[2], of[3], of[4], of[1]};
    if (joined) return {sizes ? of[0] * of[1] : of[1], of[2], of[3], of[4]};
    return {of[0], of[1], of[2], of[3], of[4]};
  };
  launch.iterate(order(out.sizes(), true));
  for (const auto& [tensor, reach, bits] : operands_) {
    const auto strides = reach == Reach::element ? order(tensor.strides(), false)
                                                 : order({tensor.stride(0), tensor.stride(1), 0, 0, 0}, false);
    if (bits) {
      launch.operand_bits(tensor, strides);
    } else {
      launch.operand(tensor, strides);
    }
  }
  for (const uint32_t word : words_) launch.extra(word);
  launch.run();
}

void check_dtype(const char* kernel, at::ScalarType dtype, std::initializer_list<at::ScalarType> known) {
  TORCH_CHECK_NOT_IMPLEMENTED(std::find(known.begin(), known.end(), dtype) != known.end(), "\"", kernel,
                              "\" not implemented for '", toString(dtype), "'");
}

}  // namespace torch_webgpu
