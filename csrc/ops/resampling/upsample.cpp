// Resizing: nearest, linear, cubic and antialiased interpolation of one to three dimensions, and their backwards.
#include "ops/resampling/upsample.h"

#include <ATen/native/UpSample.h>
#include <ATen/ops/_upsample_bicubic2d_aa_backward_meta.h>
#include <ATen/ops/_upsample_bicubic2d_aa_meta.h>
#include <ATen/ops/_upsample_bilinear2d_aa_backward_meta.h>
#include <ATen/ops/_upsample_bilinear2d_aa_meta.h>
#include <ATen/ops/_upsample_lanczos2d_aa_backward_meta.h>
#include <ATen/ops/_upsample_lanczos2d_aa_meta.h>
#include <ATen/ops/_upsample_nearest_exact1d_backward_meta.h>
#include <ATen/ops/_upsample_nearest_exact1d_meta.h>
#include <ATen/ops/_upsample_nearest_exact2d_backward_meta.h>
#include <ATen/ops/_upsample_nearest_exact2d_meta.h>
#include <ATen/ops/_upsample_nearest_exact3d_backward_meta.h>
#include <ATen/ops/_upsample_nearest_exact3d_meta.h>
#include <ATen/ops/upsample_bicubic2d_backward_meta.h>
#include <ATen/ops/upsample_bicubic2d_meta.h>
#include <ATen/ops/upsample_bilinear2d_backward_meta.h>
#include <ATen/ops/upsample_bilinear2d_meta.h>
#include <ATen/ops/upsample_linear1d_backward_meta.h>
#include <ATen/ops/upsample_linear1d_meta.h>
#include <ATen/ops/upsample_nearest1d_backward_meta.h>
#include <ATen/ops/upsample_nearest1d_meta.h>
#include <ATen/ops/upsample_nearest2d_backward_meta.h>
#include <ATen/ops/upsample_nearest2d_meta.h>
#include <ATen/ops/upsample_nearest3d_backward_meta.h>
#include <ATen/ops/upsample_nearest3d_meta.h>
#include <ATen/ops/upsample_trilinear3d_backward_meta.h>
#include <ATen/ops/upsample_trilinear3d_meta.h>

#include <cmath>

#include "families/program.h"
#include "families/spatial.h"
#include "ops/native.h"

namespace torch_webgpu {
namespace {

using at::IntArrayRef;
using at::Tensor;
using Reach = Spatial::Reach;
using Scales = std::array<std::optional<double>, 3>;  // width first

constexpr SpatialRow kNearest =
    SPATIAL_ROW("upsample_nearest", "return load1(i1 + nearest_place(w, h, z));", 0, 2, "nearest fused");
constexpr SpatialRow kNearestBackward =
    SPATIAL_ROW("upsample_nearest_backward", "return sum_nearest(i1, w, h, z);", 0, 2, "nearest fused");

// Filters of bytes; those of floats are in resample.wgsl.
template <int quarters>
double cubic(double t) {
  constexpr double a = quarters / 4.0;
  t = std::abs(t);
  if (t >= 2) return 0;
  return t < 1 ? ((a + 2) * t - (a + 3)) * t * t + 1 : ((a * t - 5 * a) * t + 8 * a) * t - 4 * a;
}
double triangle(double t) { return std::max(1 - std::abs(t), 0.0); }
double sinc(double t) { return t == 0 ? 1 : std::sin(M_PI * t) / (M_PI * t); }
double lanczos(double t) { return std::abs(t) < 3 ? sinc(t) * sinc(t / 3) : 0; }

struct Interpolation {
  const char* kernel;  // PyTorch's, for errors
  ByteFilter filter;
  SpatialRow forward, backward;
};
#define INTERPOLATION(name, kernel, filter, reach, smooth, mode)                               \
  {kernel,                                                                                     \
   {filter, reach, smooth},                                                                    \
   SPATIAL_ROW(name, "return resample(" mode ", i1, w, h, z);", 0, 2, "resample cubic fused"), \
   SPATIAL_ROW(name "_backward", "return resample_backward(" mode ", i1, w, h, z);", 0, 2,     \
               "resample cubic fused resample_backward")}
constexpr Interpolation kLinear =
    INTERPOLATION("upsample_linear", "compute_indices_weights_linear", triangle, 1, false, "LINEAR");
constexpr Interpolation kCubic =
    INTERPOLATION("upsample_cubic", "compute_indices_weights_cubic", cubic<-3>, 2, false, "CUBIC");
constexpr Interpolation kSmoothLinear =
    INTERPOLATION("upsample_linear_aa", "compute_index_ranges_weights", triangle, 1, true, "SMOOTH_LINEAR");
constexpr Interpolation kSmoothCubic =
    INTERPOLATION("upsample_cubic_aa", "compute_index_ranges_weights", cubic<-2>, 2, true, "SMOOTH_CUBIC");
constexpr Interpolation kSmoothLanczos =
    INTERPOLATION("upsample_lanczos_aa", "compute_index_ranges_weights", lanczos, 3, true, "SMOOTH_LANCZOS");

template <class... Given>
Scales width_first(Given... given) {
  const std::optional<double> values[] = {given...};
  Scales scales;
  for (size_t axis = 0; axis < sizeof...(given); ++axis) scales[axis] = values[sizeof...(given) - 1 - axis];
  return scales;
}

void check_floats(const char* kernel, at::ScalarType dtype, bool halves = true) {
  if (halves) {
    check_dtype(kernel, dtype, {at::kFloat, at::kHalf, at::kBFloat16});
  } else {
    check_dtype(kernel, dtype, {at::kFloat});
  }
}

// How the nearest input is found, as nearest.wgsl numbers it.
enum class Nearest : int64_t { same = 0, half, floor, centre, rounded };

// Where the CPU has vectorised kernels. They, and its gradients, take no notice of a scale that doubles or keeps the
// size, and have weights in float32.
bool is_vectorised(const Tensor& input, const Tensor& output) {
  const bool deep = input.dim() == 5;
  if (input.dim() == 3) return false;
  if (!deep && output.size(-2) + output.size(-1) <= 128) return true;
  return input.size(1) > 3 &&
         input.is_contiguous(deep ? at::MemoryFormat::ChannelsLast3d : at::MemoryFormat::ChannelsLast);
}

// `inner` has the input's sizes, `outer` the output's; `read` is what is loaded.
void describe_nearest(Spatial& launch, bool exact, bool by_size, const Tensor& inner, const Tensor& outer,
                      const Tensor& read, const Scales& scales) {
  for (size_t axis = 0; axis < 3; ++axis) {
    const auto dim = static_cast<int64_t>(4 - axis);
    const int64_t input = inner.size(dim), output = outer.size(dim);
    const double scale = at::native::compute_scales_value<float>(scales[axis], input, output);
    Nearest how = !exact ? Nearest::floor : by_size ? Nearest::centre : Nearest::rounded;
    if (!exact && by_size && output == input) how = Nearest::same;
    if (!exact && by_size && output == 2 * input) how = Nearest::half;
    const double rate = how == Nearest::same ? 1.0 : how == Nearest::half ? 2.0 : 1.0 / scale;
    launch.word(input).word(output).word(read.stride(dim)).word(static_cast<int64_t>(how)).number(scale);
    launch.number(rate).number(-1).number(rate + 1);
  }
}

void nearest(bool exact, const Tensor& input, const Tensor& output, const Scales& scales) {
  if (output.numel() == 0) return;
  const int64_t spatial = input.dim() - 2;
  check_dtype(spatial == 2 ? "upsample_nearest2d_channels_last" : "compute_indices_weights_nearest",
              input.scalar_type(), {at::kFloat, at::kHalf, at::kBFloat16, at::kByte});
  const Tensor inner = five_dims(input, spatial), outer = five_dims(output, spatial);
  Spatial launch(kNearest, input.scalar_type());
  launch.operand(outer, Reach::element).operand(inner, Reach::plane);
  describe_nearest(launch, exact, is_vectorised(input, output), inner, outer, inner, scales);
  launch.run();
}

void nearest_backward(bool exact, const Tensor& grad_output, const Tensor& grad_input, const Scales& scales) {
  if (grad_input.numel() == 0) return;
  const int64_t spatial = grad_input.dim() - 2;
  const char* const kernels[] = {"upsample_nearest1d_backward", "upsample_nearest2d_backward",
                                 "upsample_nearest3d_backward"};
  check_floats(kernels[spatial - 1], grad_output.scalar_type());
  const Tensor inner = five_dims(grad_input, spatial), outer = five_dims(grad_output, spatial);
  Spatial launch(kNearestBackward, grad_output.scalar_type());
  launch.operand(inner, Reach::element).operand(outer, Reach::plane);
  describe_nearest(launch, exact, true, inner, outer, outer, scales);
  launch.run();
}

struct Resampling {
  const Interpolation& interpolation;
  int64_t spatial;
  bool align_corners;
  Scales scales;
  bool rounds = false;  // the weights, to the dtype
};

// Axes other than those of `which` (a bit each, width first) are kept as they are.
void describe_resample(Spatial& launch, const Resampling& how, uint32_t which, const Tensor& inner, const Tensor& outer,
                       const Tensor& read) {
  const ByteFilter& filter = how.interpolation.filter;
  for (size_t axis = 0; axis < 3; ++axis) {
    const auto dim = static_cast<int64_t>(4 - axis);
    const int64_t input = inner.size(dim), output = outer.size(dim);
    const double scale =
        at::native::area_pixel_compute_scale<float>(input, output, how.align_corners, how.scales[axis]);
    const bool kept = !(which >> axis & 1);
    launch.word(input).word(output).word(read.stride(dim)).word(kept).number(scale);
    if (scale == 0) {
      launch.number(0).number(0).number(static_cast<double>(output));
      continue;
    }
    const double reach = static_cast<double>(filter.reach) * (filter.smooth ? std::max(scale, 1.0) : 1.0);
    launch.number(1 / scale).number(-reach / scale - 1).number((reach + 1) / scale + 1);
  }
  launch.word(how.align_corners).word(how.rounds);
}

void resample(const Resampling& how, const Tensor& from, const Tensor& to, bool backward, uint32_t which) {
  const Tensor read = five_dims(from, how.spatial), written = five_dims(to, how.spatial);
  Spatial launch(backward ? how.interpolation.backward : how.interpolation.forward, from.scalar_type());
  launch.operand(written, Reach::element).operand(read, Reach::plane);
  describe_resample(launch, how, which, backward ? written : read, backward ? read : written, read);
  launch.run();
}

#define ROW_PARAMS "row_quads row_pairs in_quads in_h in_d out_w out_h out_d scale_w scale_h scale_d corners"
constexpr Program kQuads = make_program("upsample_linear", "upsample_rows", "q:input q:output!", ROW_PARAMS,
                                        "fn put(at: u32, values: vec4<f32>, left: u32) {"
                                        "  store_output(at / 4u, values);"
                                        "}",
                                        "fused");
constexpr Program kElements = make_program("upsample_linear", "upsample_rows", "q:input T:output!", ROW_PARAMS,
                                           "fn put(at: u32, values: vec4<f32>, left: u32) {"
                                           "  for (var i = 0u; i < 4u && i < left; i++) {"
                                           "    store_output(at + i, values[i]);"
                                           "  }"
                                           "}",
                                           "fused");

int64_t bits_of(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// Returns true if it ran: only dense rows of f32 that become longer are supported.
bool resample_rows(const Resampling& how, const Tensor& from, const Tensor& to) {
  if (&how.interpolation != &kLinear || from.scalar_type() != at::kFloat) return false;
  const Tensor input = five_dims(from, how.spatial), output = five_dims(to, how.spatial);
  const int64_t width = output.size(4), quads = (width + 3) / 4;
  if (!input.is_contiguous() || !output.is_contiguous() || !begins_quad(input) || input.size(4) % 4 != 0) return false;
  if (width < input.size(4) || buffer_of(from) == buffer_of(to)) return false;
  std::array<int64_t, 3> scales;
  for (size_t axis = 0; axis < 3; ++axis) {
    const auto dim = static_cast<int64_t>(4 - axis);
    scales[axis] = bits_of(at::native::area_pixel_compute_scale<float>(input.size(dim), output.size(dim),
                                                                       how.align_corners, how.scales[axis]));
  }
  const int64_t pairs = (output.size(3) + 1) / 2;
  run(width % 4 == 0 && begins_quad(output) ? kQuads : kElements, at::kFloat,
      {output.size(0) * output.size(1) * output.size(2) * pairs * quads, 8}, {input, output},
      {quads, pairs, input.size(4) / 4, input.size(3), input.size(2), width, output.size(3), output.size(2), scales[0],
       scales[1], scales[2], how.align_corners});
  return true;
}

// Wide filters run one axis at a time, which costs the sum of the two widths instead of their product.
void resample(const Resampling& how, const Tensor& from, const Tensor& to, bool backward) {
  if (to.numel() == 0) return;
  if (!backward && resample_rows(how, from, to)) return;
  if (!how.interpolation.filter.smooth) return resample(how, from, to, backward, (1u << how.spatial) - 1);
  auto sizes = from.sizes().vec();
  sizes.back() = to.size(-1);
  const Tensor between = empty_tensor(sizes, {}, at::kFloat, from.suggest_memory_format());
  resample(how, from, between, backward, 1);
  resample(how, between, to, backward, 2);
}

template <bool exact>
struct NearestForward {
  template <class... Given>
  static void run(const Tensor& output, const Tensor& input, IntArrayRef /*size*/, Given... scales) {
    nearest(exact, input, output, width_first(scales...));
  }
};

template <bool exact>
struct NearestBackward {
  template <class... Given>
  static void run(const Tensor& grad_input, const Tensor& grad_output, IntArrayRef /*size*/, IntArrayRef /*input*/,
                  Given... scales) {
    nearest_backward(exact, grad_output, grad_input, width_first(scales...));
  }
};

template <const Interpolation& interpolation>
struct Forward {
  template <class... Given>
  static void run(const Tensor& output, const Tensor& input, IntArrayRef /*size*/, bool align_corners,
                  Given... scales) {
    const int64_t spatial = sizeof...(scales);
    if (spatial == 2 && input.scalar_type() == at::kByte && output.numel() > 0) {
      return upsample_bytes(interpolation.filter, input, output, align_corners, width_first(scales...));
    }
    if (output.numel() > 0) check_floats(interpolation.kernel, input.scalar_type(), !interpolation.filter.smooth);
    const bool rounds = spatial == 1 || &interpolation == &kCubic || !is_vectorised(input, output);
    resample({interpolation, spatial, align_corners, width_first(scales...), rounds}, input, output, false);
  }
};

template <const Interpolation& interpolation>
struct Backward {
  template <class... Given>
  static void run(const Tensor& grad_input, const Tensor& grad_output, IntArrayRef /*size*/, IntArrayRef /*input*/,
                  bool align_corners, Given... scales) {
    const int64_t spatial = sizeof...(scales);
    if (grad_input.numel() > 0) {
      check_floats(interpolation.kernel, grad_output.scalar_type(), !interpolation.filter.smooth);
    }
    resample({interpolation, spatial, align_corners, width_first(scales...)}, grad_output, grad_input, true);
  }
};

#define UPSAMPLE(name, forward, backward)                                                                       \
  native<&OneOutput<at::meta::structured_##name, forward>::functional>(library, #name);                         \
  native<&OneOutput<at::meta::structured_##name, forward>::out>(library, #name ".out");                         \
  native<&OneOutput<at::meta::structured_##name##_backward, backward>::functional>(library, #name "_backward"); \
  native<&OneOutput<at::meta::structured_##name##_backward, backward>::out>(library, #name "_backward.grad_input")

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  UPSAMPLE(upsample_nearest1d, NearestForward<false>, NearestBackward<false>);
  UPSAMPLE(upsample_nearest2d, NearestForward<false>, NearestBackward<false>);
  UPSAMPLE(upsample_nearest3d, NearestForward<false>, NearestBackward<false>);
  UPSAMPLE(_upsample_nearest_exact1d, NearestForward<true>, NearestBackward<true>);
  UPSAMPLE(_upsample_nearest_exact2d, NearestForward<true>, NearestBackward<true>);
  UPSAMPLE(_upsample_nearest_exact3d, NearestForward<true>, NearestBackward<true>);
  UPSAMPLE(upsample_linear1d, Forward<kLinear>, Backward<kLinear>);
  UPSAMPLE(upsample_bilinear2d, Forward<kLinear>, Backward<kLinear>);
  UPSAMPLE(upsample_trilinear3d, Forward<kLinear>, Backward<kLinear>);
  UPSAMPLE(upsample_bicubic2d, Forward<kCubic>, Backward<kCubic>);
  UPSAMPLE(_upsample_bilinear2d_aa, Forward<kSmoothLinear>, Backward<kSmoothLinear>);
  UPSAMPLE(_upsample_bicubic2d_aa, Forward<kSmoothCubic>, Backward<kSmoothCubic>);
  UPSAMPLE(_upsample_lanczos2d_aa, Forward<kSmoothLanczos>, Backward<kSmoothLanczos>);
}

}  // namespace
}  // namespace torch_webgpu
