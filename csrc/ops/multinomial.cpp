// multinomial as a race: each category's time is exponential with its probability as rate, and the first ones win. So
// zero probabilities lose to all others, and nothing is summed.
#include <ATen/ops/amax.h>
#include <ATen/ops/amin.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/div.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/topk.h>
#include <torch/library.h>

#include <cmath>

#include "ops/random.h"

namespace torch_webgpu {
namespace {

constexpr int64_t kMaxCategories = int64_t{1} << 24;
constexpr int64_t kRaceElements = int64_t{1} << 23;  // of samples with replacement that race at once

// Probabilities over times: the larger, the sooner.
at::Tensor race(const at::Tensor& weights, at::IntArrayRef sizes, const OptionalGenerator& generator) {
  at::Tensor times = at::empty(sizes, weights.options());
  times.exponential_(1, generator);
  return at::div_out(times, weights, times);
}

void check_weights(const at::Tensor& weights, bool with_replacement) {
  const double least = at::amin(weights).item<double>(), most = at::amax(weights).item<double>();
  if (with_replacement) {
    TORCH_CHECK(least >= 0, "invalid multinomial distribution (encountering probability entry < 0)");
    TORCH_CHECK(std::isfinite(most),
                "invalid multinomial distribution (encountering probability entry = infinity or NaN)");
  } else {
    TORCH_CHECK(least >= 0 && most < INFINITY, "probability tensor contains either `inf`, `nan` or element < 0");
  }
  TORCH_CHECK(at::amin(at::amax(weights, -1)).item<double>() > 0,
              "invalid multinomial distribution (sum of probabilities <= 0)");
}

at::Tensor& multinomial_out(const at::Tensor& self, int64_t samples, bool replacement, OptionalGenerator generator,
                            at::Tensor& out) {
  TORCH_CHECK(out.device() == self.device(), "multinomial arguments must have the same device");
  TORCH_CHECK(self.dim() > 0 && self.dim() <= 2, "prob_dist must be 1 or 2 dim");
  TORCH_CHECK(self.is_floating_point(),
              "multinomial only supports floating-point dtypes for input, got: ", self.scalar_type());
  TORCH_CHECK(out.scalar_type() == at::kLong, "multinomial expects Long tensor out, got: ", out.scalar_type());
  TORCH_CHECK(samples > 0, "cannot sample n_sample <= 0 samples");
  const int64_t categories = self.size(-1);
  TORCH_CHECK(replacement || samples <= categories,
              "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  TORCH_CHECK(categories <= kMaxCategories, "number of categories cannot exceed 2^24");
  const bool one_row = self.dim() == 1;
  out.resize_(one_row ? at::DimVector{samples} : at::DimVector{self.size(0), samples});
  if (out.numel() == 0) return out;

  const at::Tensor weights = (one_row ? self.unsqueeze(0) : self).to(at::kFloat);
  check_weights(weights, replacement && samples > 1);
  const at::Tensor rows = one_row ? out.unsqueeze(0) : out;
  if (samples == 1) {
    rows.copy_(at::argmax(race(weights, weights.sizes(), generator), -1, /*keepdim=*/true));
  } else if (!replacement) {
    rows.copy_(std::get<1>(at::topk(race(weights, weights.sizes(), generator), samples)));
  } else {
    const int64_t at_once = std::max<int64_t>(1, kRaceElements / (weights.size(0) * categories));
    for (int64_t begin = 0; begin < samples; begin += at_once) {
      const int64_t count = std::min(at_once, samples - begin);
      rows.narrow(1, begin, count)
          .copy_(at::argmax(race(weights.unsqueeze(1), {weights.size(0), count, categories}, generator), -1));
    }
  }
  return out;
}

at::Tensor multinomial(const at::Tensor& self, int64_t samples, bool replacement, OptionalGenerator generator) {
  at::Tensor out = at::empty({0}, self.options().dtype(at::kLong));
  return multinomial_out(self, samples, replacement, std::move(generator), out);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("multinomial", &multinomial);
  library.impl("multinomial.out", &multinomial_out);
}

}  // namespace
}  // namespace torch_webgpu
