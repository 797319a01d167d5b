#include <ATen/native/UpSample.h>
#include <ATen/ops/from_blob.h>

#include <cmath>
#include <vector>

#include "families/spatial.h"
#include "ops/resampling/upsample.h"

namespace torch_webgpu {
namespace {

using Reach = Spatial::Reach;

constexpr SpatialRow kBytes = SPATIAL_ROW("upsample_bytes", "return sum_bytes(i1, i2, w, h);", 0, 2, "upsample_bytes");

// For every output the first input and the weights of it and its neighbours, in units of 2^-precision.
struct Weights {
  std::vector<int32_t> table;
  int64_t taps = 0, precision = 0;
};

struct Axis {
  int64_t input, output;
  double scale;
  bool align_corners;
};

// Taps outside count for the input at the edge. Returns the first input.
int64_t edge_weights(const ByteFilter& filter, const Axis& axis, int64_t o, double* weights) {
  const double source =
      at::native::area_pixel_compute_source_index<double>(axis.scale, o, axis.align_corners, filter.reach > 1);
  int64_t middle = 0;
  double behind = 0;
  at::native::guard_index_and_lambda(source, axis.input, middle, behind);
  const int64_t begin = middle - filter.reach + 1, first = std::max<int64_t>(begin, 0);
  for (int64_t k = 0; k < 2 * filter.reach; ++k) {
    const int64_t place = std::clamp<int64_t>(begin + k, first, axis.input - 1);
    weights[place - first] += filter.at(static_cast<double>(k + 1 - filter.reach) - behind);
  }
  return first;
}

// Taps outside are left out.
int64_t smooth_weights(const ByteFilter& filter, const Axis& axis, int64_t o, double* weights, int64_t taps) {
  const double wide = std::max(axis.scale, 1.0), half = static_cast<double>(filter.reach) * wide,
               centre = axis.scale * (static_cast<double>(o) + 0.5);
  const auto first = std::max<int64_t>(std::llround(centre - half), 0);
  const auto end = std::min<int64_t>(std::llround(centre + half), axis.input);
  double total = 0;
  for (int64_t k = 0; k < std::min(end - first, taps); ++k) {
    total += weights[k] = filter.at((static_cast<double>(k + first) - centre + 0.5) / wide);
  }
  for (int64_t k = 0; k < taps && total != 0; ++k) weights[k] /= total;
  return first;
}

Weights weights_of(const ByteFilter& filter, const Axis& axis) {
  Weights result;
  const double wide = filter.smooth ? std::max(axis.scale, 1.0) : 1.0;
  result.taps = 2 * static_cast<int64_t>(std::ceil(static_cast<double>(filter.reach) * wide)) + filter.smooth;
  std::vector<double> weights(axis.output * result.taps);
  std::vector<int64_t> first(axis.output);
  for (int64_t o = 0; o < axis.output; ++o) {
    double* own = weights.data() + o * result.taps;
    first[o] = filter.smooth ? smooth_weights(filter, axis, o, own, result.taps) : edge_weights(filter, axis, o, own);
  }
  const double largest = *std::max_element(weights.begin(), weights.end());
  while (result.precision < 22 && std::llround(largest * static_cast<double>(2 << result.precision)) < (1 << 15)) {
    ++result.precision;
  }
  for (int64_t o = 0; o < axis.output; ++o) {
    result.table.push_back(static_cast<int32_t>(first[o]));
    for (int64_t k = 0; k < result.taps; ++k) {
      const double value = weights[o * result.taps + k] * static_cast<double>(1 << result.precision);
      result.table.push_back(static_cast<int32_t>(std::lround(value)));
    }
  }
  return result;
}

void upsample_axis(const ByteFilter& filter, const at::Tensor& input, const at::Tensor& output, int64_t axis,
                   bool align_corners, std::optional<double> given) {
  const int64_t from = input.size(4 - axis), to = output.size(4 - axis);
  const double scale = at::native::area_pixel_compute_scale<double>(from, to, align_corners, given);
  Weights weights = weights_of(filter, {from, to, scale, align_corners});
  const at::Tensor table = at::from_blob(weights.table.data(), {static_cast<int64_t>(weights.table.size())}, at::kInt)
                               .to(output.device())
                               .expand({output.size(0), output.size(1), 1, 1, -1});
  Spatial launch(kBytes, at::kByte);
  launch.operand(output, Reach::element).operand(input, Reach::plane).operand(table, Reach::plane);
  launch.word(axis).word(weights.taps).word(weights.precision);
  launch.word(input.stride(4)).word(input.stride(3)).run();
}

}  // namespace

void upsample_bytes(const ByteFilter& filter, const at::Tensor& input, const at::Tensor& output, bool align_corners,
                    const std::array<std::optional<double>, 3>& scales) {
  auto sizes = input.sizes().vec();
  sizes.back() = output.size(-1);
  const at::Tensor between = empty_tensor(sizes, {}, at::kByte, input.suggest_memory_format());
  upsample_axis(filter, five_dims(input, 2), five_dims(between, 2), 0, align_corners, scales[0]);
  upsample_axis(filter, five_dims(between, 2), five_dims(output, 2), 1, align_corners, scales[1]);
}

}  // namespace torch_webgpu
