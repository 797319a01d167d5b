#include "ops/random/random.h"

#include <ATen/MemoryOverlap.h>
#include <c10/util/SmallVector.h>

#include <cmath>
#include <vector>

#include "device/context.h"
#include "device/generator.h"
#include "families/launch.h"
#include "families/windows.h"

namespace torch_webgpu {
namespace {

constexpr PointwiseRow kEvents =
    random_row("bernoulli", "random_event(block[lane])", "random", 2, PointwiseRow::returns_bool);

void draw_piece(const at::Tensor& out, at::TensorList inputs, const PointwiseRow& row, at::ScalarType compute,
                Scalars scalars, at::ArrayRef<uint32_t> words) {
  at::TensorIteratorConfig config;
  config.check_all_same_dtype(false).enforce_linear_iteration(true).resize_outputs(false).add_output(out);
  for (const auto& input : inputs) config.add_const_input(input);
  auto iterator = config.build();
  elementwise(iterator, row, compute, scalars, words);
}

}  // namespace

void draw(const at::Tensor& out, const PointwiseRow& row, at::ScalarType compute, const OptionalGenerator& generator,
          Scalars scalars, at::ArrayRef<uint32_t> words, at::TensorList inputs) {
  // A generator's device counts in the dispatch: with one of webgpu, a tensor of the CPU gets here too.
  TORCH_CHECK(out.device().type() == kDeviceType, "Expected a '", out.device().type(),
              "' device type for generator but found '", kDeviceType, "'");
  at::assert_no_internal_overlap(out);
  for (const auto& input : inputs) {
    if (out.is_alias_of(input)) at::assert_no_partial_overlap(out, input);
  }
  auto* source = at::get_generator_or_default<Generator>(generator, default_generator());
  const int64_t size = out.numel(), per_block = row.flags & PointwiseRow::own_block ? 1 : 4;
  if (size == 0) return;
  const auto [seed, first] = source->take((size + per_block - 1) / per_block);

  c10::SmallVector<uint32_t, 16> all{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32), 0, 0, 0};
  all.append(words.begin(), words.end());
  const auto piece = [&](const at::Tensor& part, at::TensorList part_inputs, int64_t begin) {
    const uint64_t counter = first + begin / per_block;
    all[2] = static_cast<uint32_t>(counter);
    all[3] = static_cast<uint32_t>(counter >> 32);
    draw_piece(part, part_inputs, row, compute, scalars, all);
  };
  std::vector<at::Tensor> expanded;
  bool fits = fits_binding(out);
  for (const auto& input : inputs) {
    expanded.push_back(input.expand(out.sizes()));
    fits = fits && fits_binding(input);
  }
  if (fits) return piece(out, expanded, 0);

  // Larger than a binding: in pieces of which each fits, so the index goes on from one to the next.
  const at::Tensor flat = out.is_contiguous() ? out.view(-1) : empty_tensor({size}, {}, out.scalar_type());
  for (auto& input : expanded) input = input.contiguous().view(-1);
  std::vector<at::Tensor> parts(expanded.size());
  const int64_t count = static_cast<int64_t>(max_binding_bytes() / 16) & ~int64_t{63};
  for (int64_t begin = 0; begin < size; begin += count) {
    const int64_t length = std::min(count, size - begin);
    for (size_t i = 0; i < parts.size(); ++i) parts[i] = expanded[i].narrow(0, begin, length);
    piece(flat.narrow(0, begin, length), parts, begin);
  }
  if (!out.is_contiguous()) out.copy_(flat.view(out.sizes()));
}

void draw_events(const at::Tensor& out, double p, const OptionalGenerator& generator) {
  const bool certain = p >= 1;
  const auto threshold = certain ? uint32_t{0} : static_cast<uint32_t>(std::ldexp(p, 32));
  draw(out, kEvents, at::kBool, generator, {}, {threshold, uint32_t{certain}});
}

uint32_t unit_shift(at::ScalarType dtype) {
  switch (dtype) {
    case at::kHalf: return 32 - 11;
    case at::kBFloat16: return 32 - 8;
    default: return 32 - 24;
  }
}

std::array<uint32_t, 4> random_block(uint64_t seed, uint64_t counter) {
  std::array<uint32_t, 4> c{static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0};
  auto key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p = uint64_t{0xd2511f53} * c[0], q = uint64_t{0xcd9e8d57} * c[2];
    c = {static_cast<uint32_t>(q >> 32) ^ c[1] ^ key0, static_cast<uint32_t>(q),
         static_cast<uint32_t>(p >> 32) ^ c[3] ^ key1, static_cast<uint32_t>(p)};
    key0 += 0x9e3779b9;
    key1 += 0xbb67ae85;
  }
  return c;
}

}  // namespace torch_webgpu
