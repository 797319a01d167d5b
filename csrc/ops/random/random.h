// Random rows: each element of a tensor gets its numbers by its place in logical order, whatever its strides.
#pragma once
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <optional>

#include "ops/pointwise/table.h"

namespace torch_webgpu {

using OptionalGenerator = std::optional<at::Generator>;

// Seed and counter, two words each, and the zero that keeps products unfused.
constexpr uint8_t kRandomWords = 5;

constexpr PointwiseRow random_row(const char* name, const char* formula, const char* library = "random",
                                  uint8_t extra_words = 0, int extra_flags = PointwiseRow::none) {
  return make_row(name, formula, PointwiseRow::random | extra_flags, library, kRandomWords + extra_words);
}

// out = the row's formula, of the inputs where there are some (of out's shape, or such as can be expanded to it).
// `words` are the row's own, behind kRandomWords.
void draw(const at::Tensor& out, const PointwiseRow& row, at::ScalarType compute, const OptionalGenerator& generator,
          Scalars scalars = {}, at::ArrayRef<uint32_t> words = {}, at::TensorList inputs = {});

// Whether each element is true has the probability p.
void draw_events(const at::Tensor& out, double p, const OptionalGenerator& generator);

// 32 less the bits of precision of a dtype: the word of random_unit.
uint32_t unit_shift(at::ScalarType dtype);

// Takes four random words on the host, for keys.
std::array<uint32_t, 4> random_block(uint64_t seed, uint64_t counter);

}  // namespace torch_webgpu
