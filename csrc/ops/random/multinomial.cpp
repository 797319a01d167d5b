// multinomial as a race: each category's time is exponential with its probability as rate, and the first ones win. So
// zero probabilities lose to all others, and nothing is summed.
#include <ATen/ops/argmax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/topk.h>
#include <torch/library.h>

#include "families/indexed.h"
#include "ops/native.h"
#include "ops/random/random.h"
#include "runtime/messages.h"

namespace torch_webgpu {
namespace {

constexpr int64_t kMaxCategories = int64_t{1} << 24;
constexpr int64_t kRaceElements = int64_t{1} << 23;  // compared in one pass when drawing with replacement

constexpr PointwiseRow kRace = random_row("multinomial", "a / random_exponential(block[lane])");

// A row from which a zero probability was drawn holds only zeros. x: the messages, and the stride of the categories.
constexpr IndexedRow kCheck{"multinomial",
                            "let weight = load0(i0);"
                            "if (weight < 0.0 || is_nan(weight)) { complain(x(0u)); }"
                            "if (is_inf(weight)) { complain(x(1u)); }"
                            "if (d0 != 0u || load0(i0 + load1(i1).x * x(3u)) != 0.0) { return; }"
                            "for (var i = 0u; i < x(4u); i++) { if (load0(i0 + i * x(3u)) < 0.0) { return; } }"
                            "complain(x(2u));",
                            IndexedRow::acts | IndexedRow::checks, 1, 0};

// The probability divided by an exponential time: the largest quotients win.
at::Tensor race(const at::Tensor& weights, at::IntArrayRef sizes, const OptionalGenerator& generator) {
  at::Tensor times = at::empty(sizes, weights.options());
  draw(times, kRace, at::kFloat, generator, {}, {}, weights);
  return times;
}

// Whoever reads the samples, or anything else, gets the error: nobody waits for it here.
void check_weights(const at::Tensor& weights, const at::Tensor& samples, bool with_replacement) {
  const char* no_weight = "probability tensor contains either `inf`, `nan` or element < 0";
  Indexed(kCheck, at::kFloat)
      .iterate(weights.sizes())
      .operand(weights, weights.strides())
      .operand(samples, {samples.stride(0), 0})
      .extra(message_number(with_replacement ? "invalid multinomial distribution (encountering probability entry < 0)"
                                             : no_weight))
      .extra(message_number(with_replacement
                                ? "invalid multinomial distribution (encountering probability entry = infinity or NaN)"
                                : no_weight))
      .extra(message_number("invalid multinomial distribution (sum of probabilities <= 0)"))
      .extra(weights.stride(1))
      .extra(weights.size(1))
      .run();
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
  at::Tensor rows = one_row ? out.unsqueeze(0) : out;
  if (samples == 1) {
    at::argmax_out(rows, race(weights, weights.sizes(), generator), -1, /*keepdim=*/true);
  } else if (!replacement) {
    at::Tensor times = at::empty({0}, weights.options());
    at::topk_out(times, rows, race(weights, weights.sizes(), generator), samples);
  } else {
    const int64_t at_once = std::max<int64_t>(1, kRaceElements / (weights.size(0) * categories));
    for (int64_t begin = 0; begin < samples; begin += at_once) {
      const int64_t count = std::min(at_once, samples - begin);
      at::Tensor part = rows.narrow(1, begin, count);
      at::argmax_out(part, race(weights.unsqueeze(1), {weights.size(0), count, categories}, generator), -1);
    }
  }
  check_weights(weights, rows, replacement && samples > 1);
  return out;
}

at::Tensor multinomial(const at::Tensor& self, int64_t samples, bool replacement, OptionalGenerator generator) {
  at::Tensor out = at::empty({0}, self.options().dtype(at::kLong));
  return multinomial_out(self, samples, replacement, std::move(generator), out);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  native<&multinomial>(library, "multinomial");
  native<&multinomial_out>(library, "multinomial.out");
}

}  // namespace
}  // namespace torch_webgpu
