#include "families/convolution_tile.h"

#include <algorithm>
#include <atomic>
#include <numeric>

#include "families/convolution_launch.h"
#include "shader/matmul_tile.h"

namespace torch_webgpu {
namespace {

// In the order of preference.
constexpr ConvolutionTile kTiles[] = {
    {"64x64", 1, 33, 2 * kGpuUnits},
    {"32x32", 0, 9, 0},
};

std::atomic<const ConvolutionTile*> forced{nullptr};  // for tests

constexpr int64_t kMostGroups = 65535;

bool is_float(at::ScalarType dtype) { return at::isReducedFloatingType(dtype) || dtype == at::kFloat; }

// Whether every dimension but one walks memory by whole quads, from an offset that is one.
bool in_quads(const View& view, std::initializer_list<int64_t> strides) {
  return view.tensor.storage_offset() % 4 == 0 &&
         std::all_of(strides.begin(), strides.end(), [](int64_t stride) { return stride % 4 == 0; });
}
int64_t stride_of(int64_t size, int64_t stride) { return size == 1 ? 0 : stride; }
int64_t stride_of(const View& view, int axis) { return stride_of(view.size[axis], view.stride[axis]); }
int64_t image_stride(const View& view) { return stride_of(view.outer[0], view.outer_stride[0]); }

// Channels are neighbours in memory, in whole quads; `channels` are those of a group.
bool has_quads_of_channels(const View& view, int64_t channels) {
  return view.outer_stride[1] == 1 && channels % 4 == 0 &&
         in_quads(view, {image_stride(view), stride_of(view, 0), stride_of(view, 1), stride_of(view, 2)});
}
// The pixels of an image are neighbours in memory, in whole quads.
bool has_quads_of_pixels(const View& view) {
  const auto& size = view.size;
  return (size[2] == 1 || view.stride[2] == 1) && (size[1] == 1 || view.stride[1] == size[2]) &&
         (size[0] == 1 || view.stride[0] == size[1] * size[2]) && product(size) % 4 == 0 &&
         in_quads(view, {image_stride(view), stride_of(view.outer[1], view.outer_stride[1])});
}

// The axes that a kernel has to look at, counted from the last one.
uint8_t axes_of(const View& out, const View& x, const Weight& weight, const Window& window) {
  for (uint8_t axis = 0; axis < 2; ++axis) {
    if (out.size[axis] != 1 || x.size[axis] != 1 || weight.kernel[axis] != 1 || window.padding[axis] != 0) {
      return 3 - axis;
    }
  }
  return 1;
}

Axes phases_of(const OutputProblem& problem) { return problem.transposed ? problem.window.stride : Axes{1, 1, 1}; }

Axes phase_size(const OutputProblem& problem) {
  Axes size = problem.out.size;
  const Axes phases = phases_of(problem);
  for (int i = 0; i < 3; ++i) size[i] = ceil_div(size[i], phases[i]);
  return size;
}

// Whether rows of the product are pixels: the neighbours that are stored together are those of a row.
bool is_turned(const View& out) { return out.outer_stride[1] == 1 && out.outer[1] > 1; }

std::array<int64_t, 3> groups_of(const ConvolutionTile& row, int64_t rows, int64_t columns, int64_t batches) {
  const MatmulTile& tile = kMatmulTiles[row.tile];
  return {ceil_div(columns, tile.columns), ceil_div(rows, tile.rows), batches};
}

std::array<int64_t, 3> groups_of(const ConvolutionTile& row, const OutputProblem& problem) {
  const int64_t pixels = problem.out.outer[0] * product(phase_size(problem)), channels = problem.weight.rows;
  const int64_t batches = problem.window.groups * product(phases_of(problem));
  return is_turned(problem.out) ? groups_of(row, pixels, channels, batches) : groups_of(row, channels, pixels, batches);
}

bool can_launch(const std::array<int64_t, 3>& groups) {
  return std::all_of(groups.begin(), groups.end(), [](int64_t count) { return count <= kMostGroups; });
}

bool can_run(const ConvolutionTile& row, const OutputProblem& problem) {
  constexpr int64_t kMostSteps = 1 << 19;  // see convolution_tile_split.wgsl
  const auto are_floats = [](const auto&... tensors) { return (is_float(tensors.scalar_type()) && ...); };
  return !target().software && are_floats(problem.out.tensor, problem.x.tensor, problem.kernel) &&
         product(problem.weight.kernel) * problem.weight.channels > 0 &&
         product(problem.weight.kernel) * problem.weight.channels < kMostSteps && can_launch(groups_of(row, problem));
}

bool is_worth(const ConvolutionTile& row, int64_t rows, const std::array<int64_t, 3>& groups) {
  return rows >= row.rows && groups[0] * groups[1] * groups[2] >= row.groups;
}

// A tap meets a phase if phase + base - tap * dilation is a multiple of the gap. That is every tap_step-th one.
void set_taps(ConvolutionParams& params, const OutputProblem& problem) {
  for (int i = 0; i < 3; ++i) {
    const int64_t gap = problem.window.stride[i], dilation = problem.window.dilation[i];
    const int64_t common = std::gcd(gap, dilation), step = gap / common;
    int64_t inverse = 1;
    while (inverse * (dilation / common) % step != 1 % step) ++inverse;
    params.tap_step[i] = static_cast<uint32_t>(step);
    params.tap_inverse[i] = static_cast<uint32_t>(inverse);
    params.shift_step[i] = static_cast<int32_t>(-dilation / common);
  }
}

// How a kernel loads the weight: as it lies where that is in quads, else packed for it.
struct Rows {
  at::Tensor tensor;
  Walk walk;
  int64_t image, row, channel;  // strides: by group, channel that comes out, channel that goes in
  Axes tap;
};

Rows rows_of(const OutputProblem& problem) {
  const Weight& weight = problem.weight;
  const Axes& by = weight.kernel_stride;
  const auto is_quad = [&](int64_t stride, int64_t count) {
    bool taps = true;
    for (int i = 0; i < 3; ++i) taps &= weight.kernel[i] == 1 || by[i] % 4 == 0;
    return taps && stride % 4 == 0 && count % 4 == 0 && problem.kernel.storage_offset() % 4 == 0 &&
           (problem.window.groups == 1 || weight.group_stride % 4 == 0);
  };
  const Rows given{problem.kernel, Walk::along, weight.group_stride, weight.row_stride, weight.channel_stride, by};
  if (weight.channel_stride == 1 && is_quad(weight.row_stride, weight.channels)) return given;
  if (weight.row_stride == 1 && is_quad(weight.channel_stride, weight.rows)) {
    Rows across = given;
    across.walk = Walk::across;
    return across;
  }
  const at::Tensor packed = pack_weight(problem.kernel, weight, problem.window.groups, problem.kernel.scalar_type());
  return {packed, Walk::across,     packed.stride(0),
          1,      packed.stride(4), {packed.stride(1), packed.stride(2), packed.stride(3)}};
}

void set_steps(GatheredProduct& gathered, const Window& window, bool transposed) {
  for (int i = 0; i < 3; ++i) {
    gathered.params.step[i] = static_cast<uint32_t>(transposed ? 1 : window.stride[i]);
    gathered.params.base[i] = static_cast<int32_t>(transposed ? window.padding[i] : -window.padding[i]);
    gathered.params.dilation[i] = static_cast<int32_t>(transposed ? -window.dilation[i] : window.dilation[i]);
  }
}

void set_x(ConvolutionParams& params, const View& x) {
  copy_axes(params.x_size, x.size);
  copy_axes(params.x_stride, x.stride);
  params.x_image = static_cast<uint32_t>(x.outer_stride[0]);
  params.x_channel = static_cast<uint32_t>(x.outer_stride[1]);
}

uint32_t slice_of(const ConvolutionSpec& spec) {
  const MatmulTile& tile = kMatmulTiles[spec.rows];
  const bool packed = stay_packed(tile, static_cast<DType>(spec.dtype[kX]), static_cast<Walk>(spec.walk_x),
                                  static_cast<DType>(spec.dtype[kRow]), static_cast<Walk>(spec.walk_row));
  return packed ? tile.half_slice : tile.slice;
}

}  // namespace

const ConvolutionTile* tile_of(const OutputProblem& problem) {
  if (target().software) return nullptr;
  if (const ConvolutionTile* wanted = forced; wanted && can_run(*wanted, problem)) [[unlikely]]
    return wanted;
  for (const ConvolutionTile& row : kTiles) {
    if (can_run(row, problem) && is_worth(row, problem.weight.rows, groups_of(row, problem))) return &row;
  }
  return nullptr;
}

const ConvolutionTile* tile_of(const OutputProblem& problem, int64_t number) {
  if (number < 0 || number >= static_cast<int64_t>(std::size(kTiles))) return nullptr;
  return can_run(kTiles[number], problem) ? &kTiles[number] : nullptr;
}

Candidates tile_candidates(const OutputProblem& problem, int64_t first_number) {
  Candidates found;
  for (const ConvolutionTile& row : kTiles) {
    if (can_run(row, problem)) found.emplace_back(first_number + (&row - kTiles), row.name);
  }
  return found;
}

void convolve_tiled(const ConvolutionTile& tile, const OutputProblem& problem, const at::Tensor& bias,
                    const EpilogueCall* call) {
  const auto& [window, transposed, out, x, kernel, weight] = problem;
  const Axes phases = phases_of(problem);
  const bool phased = product(phases) > 1, turned = is_turned(out);
  const bool fours = (turned ? has_quads_of_channels(out, weight.rows) : !phased && has_quads_of_pixels(out)) &&
                     !(call && call->epilogue.text->fours.empty());
  // An element alone in a word takes two atomics: halves that are not stored in fours are rounded by a copy.
  const at::Tensor result = call || fours ? out.tensor : words_like(out.tensor);
  const Rows rows = rows_of(problem);

  GatheredProduct gathered(ConvolutionForm::tiled_output);
  ConvolutionSpec& spec = gathered.spec;
  spec.rows = tile.tile;
  spec.has_gap = phased;
  spec.quads = fours;
  spec.turned = turned;
  spec.axes = axes_of(out, x, weight, window);
  spec.walk_x = static_cast<uint8_t>(has_quads_of_channels(x, weight.channels) ? Walk::along : Walk::elements_across);
  spec.walk_row = static_cast<uint8_t>(rows.walk);
  if (call) {
    gathered.epilogue(*call, x.tensor, rows.tensor);
  } else {
    gathered.operand(kOut, result);
    gathered.operand(kX, x.tensor);
    gathered.operand(kRow, rows.tensor);
    if (bias.defined()) gathered.operand(kBias, bias);
  }
  spec.whole = weight.channels % slice_of(spec) == 0;

  ConvolutionParams& params = gathered.params;
  const Axes size = phase_size(problem);
  const int64_t pixels = out.outer[0] * product(size);
  params.rows = static_cast<uint32_t>(turned ? pixels : weight.rows);
  params.columns = static_cast<uint32_t>(turned ? weight.rows : pixels);
  params.groups = static_cast<uint32_t>(window.groups);
  params.channels = static_cast<uint32_t>(weight.channels);
  set_steps(gathered, window, transposed);
  set_x(params, x);
  if (phased) set_taps(params, problem);
  copy_axes(params.gap, phases);
  copy_axes(params.phase_size, size);
  copy_axes(params.out_size, out.size);
  copy_axes(params.kernel, weight.kernel);
  copy_axes(params.out_stride, out.stride);
  copy_axes(params.row_stride, rows.tap);
  params.out_image = static_cast<uint32_t>(out.outer_stride[0]);
  params.out_channel = static_cast<uint32_t>(out.outer_stride[1]);
  params.row_image = static_cast<uint32_t>(rows.image);
  params.row_step = static_cast<uint32_t>(rows.row);
  params.row_channel = static_cast<uint32_t>(rows.channel);
  gathered.run_workgroups(groups_of(tile, problem));
  if (!call && !result.is_same(out.tensor)) out.tensor.copy_(result);
}

bool convolve_weight_tiled(const Window& window, const at::Tensor& grad_weight, const View& grad, const View& x) {
  constexpr int64_t kSteps = 2048;  // of a part at most: a sum of many terms in a row loses digits
  constexpr int64_t kLeast = 256, kSlice = 32, kPartBytes = 64 << 20;
  const View shape(grad_weight);
  const Weight weight(shape, window.groups, false);
  const int64_t pixels = grad.outer[0] * product(grad.size), columns = weight.channels * product(weight.kernel);
  const bool in_order = grad_weight.is_contiguous();
  const bool by_taps = grad_weight.is_contiguous(grad_weight.dim() == 5   ? at::MemoryFormat::ChannelsLast3d
                                                 : grad_weight.dim() == 4 ? at::MemoryFormat::ChannelsLast
                                                                          : at::MemoryFormat::Contiguous) &&
                       grad_weight.dim() > 3;
  if (target().software || pixels == 0 || (!in_order && !by_taps) || !is_float(grad_weight.scalar_type())) return false;
  const bool turned = by_taps && (!in_order || x.outer_stride[1] == 1);

  const auto parts_of = [&](const ConvolutionTile& row) {
    const auto [across, down, batches] = groups_of(row, weight.rows, columns, window.groups);
    const int64_t wanted =
        std::max(std::min(ceil_div(2 * kGpuUnits, across * down * batches), pixels / kLeast), ceil_div(pixels, kSteps));
    const int64_t most = std::max<int64_t>(1, kPartBytes / (4 * grad_weight.numel()));
    return ceil_div(ceil_div(pixels, std::clamp<int64_t>(wanted, 1, most)), kSlice) * kSlice;  // pixels of a part
  };
  const auto can = [&](const ConvolutionTile& row) {
    return can_launch(groups_of(row, weight.rows, columns, window.groups * ceil_div(pixels, parts_of(row))));
  };
  const ConvolutionTile* tile = forced;
  if (!tile || !can(*tile)) {
    tile = std::find_if(std::begin(kTiles), std::end(kTiles),
                        [&](const ConvolutionTile& row) { return weight.rows >= row.rows && columns > 8 && can(row); });
    if (tile == std::end(kTiles)) return false;
  }
  const int64_t part_pixels = parts_of(*tile), parts = ceil_div(pixels, part_pixels);
  const bool direct = parts == 1 && grad_weight.scalar_type() == at::kFloat;
  const int64_t all_rows = weight.rows * window.groups;
  const at::Tensor sums = direct ? grad_weight : empty_tensor({parts, all_rows, columns}, {}, at::kFloat);

  GatheredProduct gathered(ConvolutionForm::tiled_weight);
  ConvolutionSpec& spec = gathered.spec;
  spec.rows = tile->tile;
  spec.quads = columns % 4 == 0 && sums.storage_offset() % 4 == 0;
  spec.turned = turned;
  spec.axes = axes_of(grad, x, weight, window);
  const auto walk_of = [&](const View& view, bool lines_are_channels, int64_t channels, bool pixels_in_quads) {
    if (lines_are_channels && has_quads_of_channels(view, channels)) return Walk::across;
    if (pixels_in_quads) return Walk::along;
    return lines_are_channels && view.outer_stride[1] == 1 ? Walk::elements_across : Walk::elements;
  };
  spec.walk_x = static_cast<uint8_t>(walk_of(x, turned, weight.channels, false));
  spec.walk_row = static_cast<uint8_t>(walk_of(grad, true, weight.rows, has_quads_of_pixels(grad)));
  gathered.operand(kOut, sums);
  gathered.operand(kX, x.tensor);
  gathered.operand(kRow, grad.tensor);

  ConvolutionParams& params = gathered.params;
  params.rows = static_cast<uint32_t>(weight.rows);
  params.columns = static_cast<uint32_t>(columns);
  params.groups = static_cast<uint32_t>(window.groups);
  params.channels = static_cast<uint32_t>(weight.channels);
  params.lines = static_cast<uint32_t>(pixels);
  params.part_lines = static_cast<uint32_t>(part_pixels);
  params.out_part = static_cast<uint32_t>(all_rows * columns);
  set_steps(gathered, window, false);
  set_x(params, x);
  copy_axes(params.out_size, grad.size);
  copy_axes(params.kernel, weight.kernel);
  copy_axes(params.row_stride, grad.stride);
  params.row_image = static_cast<uint32_t>(grad.outer_stride[0]);
  params.row_step = static_cast<uint32_t>(grad.outer_stride[1]);
  gathered.run_workgroups(groups_of(*tile, weight.rows, columns, window.groups * parts));
  if (!direct) add_parts("convolution", grad_weight.as_strided({all_rows, columns}, {columns, 1}), sums);
  return true;
}

void force_convolution(const std::string& name) {
  forced = nullptr;
  for (const ConvolutionTile& row : kTiles) {
    if (row.name == name) forced = &row;
  }
  TORCH_CHECK_VALUE(name.empty() || forced.load(), "webgpu: there is no tile of convolutions named ", name);
}

}  // namespace torch_webgpu
