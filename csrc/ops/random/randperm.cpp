// randperm: a permutation without a sort. Few elements take their rank among random words; many pass through a keyed
// permutation of the next power of two.
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/empty.h>

#include <bit>

#include "device/generator.h"
#include "families/launch.h"
#include "ops/native.h"
#include "ops/random/random.h"

namespace torch_webgpu {
namespace {

constexpr int64_t kRanked = 256;  // the work of ranks is the count's square
constexpr uint32_t kKeys = 16;

constexpr PointwiseRow kRank =
    random_row("randperm", "random_rank(index, block[lane])", "random_int", 1, PointwiseRow::has_index);
constexpr PointwiseRow kPermuted =
    make_row("randperm", "permuted(index)", PointwiseRow::has_index, "permutation", 4 + kKeys);

void permute(const at::Tensor& flat, const OptionalGenerator& generator) {
  const int64_t count = flat.numel();
  auto* source = at::get_generator_or_default<Generator>(generator, default_generator());
  const auto [seed, first] = source->take(kKeys / 4);
  const auto bits = static_cast<uint32_t>(std::bit_width(static_cast<uint64_t>(count - 1)));
  uint32_t words[4 + kKeys] = {static_cast<uint32_t>(count), 0, bits / 2, bits - bits / 2};
  for (uint32_t i = 0; i < kKeys; i += 4) {
    const auto block = random_block(seed, first + i / 4);
    std::copy(block.begin(), block.end(), &words[4 + i]);
  }
  const int64_t piece = static_cast<int64_t>(max_binding_bytes() / 16) & ~int64_t{63};
  for (int64_t begin = 0; begin < count; begin += piece) {
    words[1] = static_cast<uint32_t>(begin);
    const at::Tensor part = flat.narrow(0, begin, std::min(piece, count - begin));
    auto iterator =
        at::TensorIteratorConfig().check_all_same_dtype(false).resize_outputs(false).add_output(part).build();
    elementwise(iterator, kPermuted, at::kLong, {}, words);
  }
}

at::Tensor& randperm_out(int64_t n, OptionalGenerator generator, at::Tensor& out) {
  TORCH_CHECK(out.device().type() == kDeviceType, "Expected a '", out.device().type(),
              "' device type for generator but found '", kDeviceType, "'");
  TORCH_CHECK(n >= 0, "n must be non-negative, got", n);
  at::native::check_supported_max_int_with_precision(n, out);
  TORCH_CHECK(n <= int64_t{1} << 31, "webgpu: randperm of more than 2^31 elements, got ", n);
  out.resize_({n});
  TORCH_CHECK_NOT_IMPLEMENTED(out.scalar_type() != at::kBool, "\"randperm\" not implemented for 'Bool'");
  if (n == 0) return out;
  const at::Tensor flat = out.is_contiguous() ? out : at::empty({n}, out.options());
  if (n <= kRanked) {
    draw(flat, kRank, at::kLong, generator, {}, {static_cast<uint32_t>(n)});
  } else {
    permute(flat, generator);
  }
  if (!out.is_contiguous()) out.copy_(flat);
  return out;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) { native<&randperm_out>(library, "randperm.generator_out"); }

}  // namespace
}  // namespace torch_webgpu
