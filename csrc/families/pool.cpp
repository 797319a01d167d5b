#include "families/pool.h"

#include <algorithm>

#include "families/program.h"

namespace torch_webgpu {
namespace {

using Reach = Spatial::Reach;

#define WINDOWS(kind) kind "(0u, w), " kind "(1u, h), " kind "(2u, z)"
constexpr SpatialRow kMaxIndex[] = {
    SPATIAL_ROW("max_pool", "return max_index(i1, " WINDOWS("strided") ");", 0, 2, "window max_pool"),
    SPATIAL_ROW("adaptive_max_pool", "return max_index(i1, " WINDOWS("adaptive") ");", 0, 2, "window max_pool"),
    SPATIAL_ROW("fractional_max_pool",
                "let hs = i2 + outputs(0u);"
                "let zs = hs + outputs(1u);"
                "return max_index(i1, listed(0u, load2(i2 + w).x), listed(1u, load2(hs + h).x),"
                "  listed(2u, load2(zs + z).x));",
                0, 2, "window max_pool")};
constexpr SpatialRow kTake =
    SPATIAL_ROW("max_pool", "return load1(i1 + place_of(load2(i2).x));", IndexedRow::raw, 3, "window plane");
constexpr SpatialRow kMaxBackward =
    SPATIAL_ROW("max_pool_backward", "return sum_chosen(i1, i2, w, h, z);", 0, 2, "window covering max_pool_backward");
constexpr SpatialRow kAverage[] = {
    SPATIAL_ROW("avg_pool", "return average(i1, " WINDOWS("strided") ");", 0, 2, "window avg_pool"),
    SPATIAL_ROW("adaptive_avg_pool", "return average(i1, " WINDOWS("adaptive") ");", 0, 2, "window avg_pool")};
#define SHARES(adaptive) "return sum_shares(" adaptive ", i1, w, h, z);"
constexpr SpatialRow kAverageBackward[] = {
    SPATIAL_ROW("avg_pool_backward", SHARES("false"), 0, 2, "window covering avg_pool avg_pool_backward"),
    SPATIAL_ROW("adaptive_avg_pool_backward", SHARES("true"), 0, 2, "window covering avg_pool avg_pool_backward")};

#define ROW_PARAMS                                                                                                  \
  "row_quads in_w in_h in_d out_w out_h out_d kernel_w kernel_h kernel_d step_w step_h step_d padding_w padding_h " \
  "padding_d dilation_h dilation_d"
constexpr Program kMaxQuads = make_program("max_pool", "max_pool_rows", "q:input q:output! w:indices!", ROW_PARAMS,
                                           "fn put(at: u32, values: vec4<f32>, places: vec4<u32>, left: u32) {"
                                           "  store_output(at / 4u, values);"
                                           "  store_indices(at / 2u, vec4<u32>(places.x, 0u, places.y, 0u));"
                                           "  store_indices(at / 2u + 1u, vec4<u32>(places.z, 0u, places.w, 0u));"
                                           "}");
constexpr Program kMaxElements = make_program("max_pool", "max_pool_rows", "q:input T:output! i:indices!", ROW_PARAMS,
                                              "fn put(at: u32, values: vec4<f32>, places: vec4<u32>, left: u32) {"
                                              "  for (var i = 0u; i < 4u && i < left; i++) {"
                                              "    store_output(at + i, values[i]);"
                                              "    store_indices(at + i, places[i]);"
                                              "  }"
                                              "}");

// True where dense rows of f32 made it possible.
bool max_pool_rows(const Windows& windows, const at::Tensor& inner, const at::Tensor& outer, const at::Tensor& places) {
  const auto& [kernel, step, padding, dilation] =
      std::tie(windows.kernel, windows.step, windows.padding, windows.dilation);
  if (windows.kind != Windows::Kind::strided || inner.scalar_type() != at::kFloat || dilation[0] != 1) return false;
  if (!inner.is_contiguous() || !outer.is_contiguous() || !places.is_contiguous()) return false;
  if (!begins_quad(inner) || buffer_of(inner) == buffer_of(outer)) return false;
  const int64_t width = outer.size(4), quads = (width + 3) / 4;
  const bool whole = width % 4 == 0 && begins_quad(outer) && begins_quad(places);
  run(whole ? kMaxQuads : kMaxElements, at::kFloat,
      {outer.numel() / width * quads, kernel[2] * kernel[1] * (kernel[0] + 4)}, {inner, outer, places},
      {quads, inner.size(4), inner.size(3), inner.size(2), width, outer.size(3), outer.size(2), kernel[0], kernel[1],
       kernel[2], step[0], step[1], step[2], padding[0], padding[1], padding[2], dilation[1], dilation[2]});
  return true;
}

// An input i is in the windows of outputs from i * rate + first to i * rate + last, and perhaps in none of them.
struct Covering {
  double rate, first, last;
};

Covering covering(const Windows& windows, size_t axis, int64_t input, int64_t output) {
  const auto kernel = static_cast<double>(windows.kernel[axis]), padding = static_cast<double>(windows.padding[axis]);
  switch (windows.kind) {
    case Windows::Kind::strided: {
      const double rate = 1.0 / static_cast<double>(windows.step[axis]);
      return {rate, (padding - (kernel - 1) * static_cast<double>(windows.dilation[axis])) * rate, padding * rate};
    }
    case Windows::Kind::adaptive: {
      const double rate = static_cast<double>(output) / static_cast<double>(input);
      return {rate, -1, rate};
    }
    default: {
      const int64_t room = input - windows.kernel[axis];
      if (room == 0 || output == 1) return {0, 0, static_cast<double>(output)};
      const double rate = static_cast<double>(output - 1) / static_cast<double>(room);
      const double margin = 2.0 + static_cast<double>(input) / 64;  // beginnings are rounded to the dtype of the input
      return {rate, -(kernel + margin) * rate, margin * rate};
    }
  }
}

}  // namespace

Windows Windows::strided(int64_t spatial, at::IntArrayRef kernel, at::IntArrayRef stride, at::IntArrayRef padding,
                         at::IntArrayRef dilation) {
  Windows windows;
  const auto of = [&](at::IntArrayRef values, int64_t axis) {
    return values.size() == 1 ? values[0] : values[spatial - 1 - axis];
  };
  for (int64_t axis = 0; axis < spatial; ++axis) {
    windows.kernel[axis] = of(kernel, axis);
    windows.step[axis] = stride.empty() ? windows.kernel[axis] : of(stride, axis);
    windows.padding[axis] = of(padding, axis);
    windows.dilation[axis] = of(dilation, axis);
  }
  return windows;
}

void describe(Spatial& launch, const Windows& windows, const at::Tensor& inner, const at::Tensor& outer,
              const at::Tensor& read) {
  for (size_t axis = 0; axis < 3; ++axis) {
    const auto dim = static_cast<int64_t>(4 - axis);
    const int64_t input = inner.size(dim), output = outer.size(dim);
    launch.word(input).word(output).word(read.stride(dim));
    if (windows.kind == Windows::Kind::adaptive) {
      launch.word(input / output).word(input % output);
    } else {
      launch.word(windows.step[axis]).word(windows.padding[axis]);
    }
    const auto [rate, first, last] = covering(windows, axis, input, output);
    launch.word(windows.kernel[axis]).word(windows.dilation[axis]).number(rate).number(first).number(last);
  }
}

void max_pool(const Windows& windows, int64_t spatial, const at::Tensor& input, const at::Tensor& output,
              const at::Tensor& indices, const at::Tensor& starts) {
  if (output.numel() == 0) return;
  const at::Tensor inner = five_dims(input, spatial), outer = five_dims(output, spatial),
                   places = five_dims(indices, spatial);
  if (max_pool_rows(windows, inner, outer, places)) return;
  Spatial find(kMaxIndex[static_cast<size_t>(windows.kind)], input.scalar_type());
  find.operand(places, Reach::element, true).operand(inner, Reach::plane);
  if (starts.defined()) find.operand(starts, Reach::plane);
  describe(find, windows, inner, outer, inner);
  find.run();
  Spatial take(kTake, input.scalar_type());
  take.operand(outer, Reach::element).operand(inner, Reach::plane).operand(places, Reach::element);
  describe(take, windows, inner, outer, inner);
  take.run();
}

void max_pool_backward(const Windows& windows, int64_t spatial, const at::Tensor& grad_output,
                       const at::Tensor& indices, const at::Tensor& grad_input) {
  if (grad_input.numel() == 0) return;
  const bool alike = grad_output.strides() == indices.strides();
  const at::Tensor outer = five_dims(alike ? grad_output : grad_output.contiguous(), spatial),
                   places = five_dims(alike ? indices : indices.contiguous(), spatial),
                   inner = five_dims(grad_input, spatial);
  Spatial launch(kMaxBackward, grad_input.scalar_type());
  launch.operand(inner, Reach::element).operand(outer, Reach::plane).operand(places, Reach::plane);
  describe(launch, windows, inner, outer, outer);
  launch.run();
}

void avg_pool(const Windows& windows, int64_t spatial, const at::Tensor& input, const at::Tensor& output, bool padded,
              int64_t divisor) {
  if (output.numel() == 0) return;
  const at::Tensor inner = five_dims(input, spatial), outer = five_dims(output, spatial);
  Spatial launch(kAverage[static_cast<size_t>(windows.kind)], input.scalar_type());
  launch.operand(outer, Reach::element).operand(inner, Reach::plane);
  describe(launch, windows, inner, outer, inner);
  launch.word(padded).word(divisor).run();
}

void avg_pool_backward(const Windows& windows, int64_t spatial, const at::Tensor& grad_output,
                       const at::Tensor& grad_input, bool padded, int64_t divisor) {
  if (grad_input.numel() == 0) return;
  const at::Tensor inner = five_dims(grad_input, spatial), outer = five_dims(grad_output, spatial);
  Spatial launch(kAverageBackward[static_cast<size_t>(windows.kind)], grad_input.scalar_type());
  launch.operand(inner, Reach::element).operand(outer, Reach::plane);
  describe(launch, windows, inner, outer, outer);
  launch.word(padded).word(divisor).run();
}

}  // namespace torch_webgpu
