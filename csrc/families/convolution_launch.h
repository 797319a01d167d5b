// Shared by the launchers of convolutions: the operands, the parameters and the dispatch of a gathered product.
#pragma once
#include <cstring>
#include <optional>
#include <tuple>
#include <vector>

#include "families/convolution.h"
#include "families/epilogue.h"
#include "families/launch.h"
#include "families/windows.h"
#include "shader/convolution.h"

namespace torch_webgpu {

template <class Word>
void copy_axes(Word (&to)[3], const Axes& from) {
  for (int i = 0; i < 3; ++i) to[i] = static_cast<Word>(from[i]);
}

// In a dtype, by group, tap and channel, with quads of rows innermost.
at::Tensor pack_weight(const at::Tensor& tensor, const Weight& weight, int64_t groups, at::ScalarType dtype);

KernelSource print_convolution_launch(const Launch& launch);

// The dtype that the kernels store, one word per element: a copy converts the result to smaller dtypes.
at::Tensor words_like(const at::Tensor& out);

class GatheredProduct {
 public:
  explicit GatheredProduct(ConvolutionForm form) { spec.form = static_cast<uint8_t>(form); }

  void operand(ConvolutionOperand operand, const at::Tensor& tensor) {
    spec.dtype[operand] = static_cast<uint8_t>(kernel_dtype(tensor.scalar_type(), "convolution"));
    if (operand == kBias) spec.has_bias = 1;
    tensors_[operand] = tensor;
  }

  // Instead of operands: the epilogue takes what would be stored.
  void epilogue(const EpilogueCall& call, const at::Tensor& x, const at::Tensor& rows) {
    epilogue_.emplace(*call.epilogue.text, std::vector{x, rows}, call.tensors, call.read_only);
    epilogue_->bind(launch_);
    epilogue_words_ = call.words;
    spec.epilogue = call.epilogue.text;
    spec.dtype[kOut] = static_cast<uint8_t>(DType::f32);
    for (const auto& [operand, tensor, index] : {std::tuple{kX, &x, 0u}, {kRow, &rows, 1u}}) {
      spec.dtype[operand] = static_cast<uint8_t>(kernel_dtype(tensor->scalar_type(), "convolution"));
      spec.binding[operand] = static_cast<uint8_t>(index);
    }
    params.x_first = epilogue_->offset(0);
    params.row_first = epilogue_->offset(1);
  }

  // How many rows share what a lane loads: as many as registers hold where subgroups exchange them.
  int64_t tiles(int64_t rows, int64_t columns, int64_t groups) {
    const Target& adapter = target();
    spec.shared = adapter.subgroup == 8 && adapter.workgroup == 8 && rows > 4;
    spec.rows = rows <= 4 ? 4 : rows <= 8 || !spec.shared ? 8 : rows <= 16 ? 16 : 32;
    params.rows = static_cast<uint32_t>(rows);
    params.columns = static_cast<uint32_t>(columns);
    params.groups = static_cast<uint32_t>(groups);
    params.row_tiles = static_cast<uint32_t>(ceil_div(rows, spec.rows));
    params.column_tiles = static_cast<uint32_t>(ceil_div(columns, 4 * int64_t{adapter.workgroup}));
    return int64_t{params.row_tiles} * params.column_tiles * groups;
  }

  // A kernel by lines has blocks of eight neighbours as its columns.
  int64_t line_tiles(const View& out, const View& x, int64_t width, int64_t step, int64_t before) {
    spec.width = static_cast<uint8_t>(width);
    spec.step = static_cast<uint8_t>(step);
    spec.quads = before >= 0 && before < width && is_aligned(out) && is_aligned(x);
    spec.before = static_cast<uint8_t>(spec.quads ? before : 0);
    spec.rows = std::min<uint8_t>(spec.rows, 16);  // more sums than that wait in memory
    const int64_t blocks = out.outer[0] * out.size[0] * out.size[1] * ceil_div(out.size[2], 8);
    params.columns = static_cast<uint32_t>(blocks);
    params.column_tiles = static_cast<uint32_t>(ceil_div(blocks, target().workgroup));
    params.row_tiles = static_cast<uint32_t>(ceil_div(params.rows, spec.rows));
    return int64_t{params.row_tiles} * params.column_tiles * params.groups;
  }

  void run(int64_t tiles) {
    const int64_t most = target().software ? 256 : 65535, chunk = ceil_div(tiles, most);
    dispatch(tiles, {static_cast<uint32_t>(ceil_div(tiles, chunk)), static_cast<uint32_t>(chunk)});
  }
  void run_elements(int64_t count) { dispatch(count, chunks_of(count, target().workgroup)); }

  void run_workgroups(const std::array<int64_t, 3>& groups) {
    for (int i = 0; i < 3; ++i) launch_.grid[i] = static_cast<uint32_t>(groups[i]);
    dispatch_grid();
  }

  ConvolutionSpec spec{};
  ConvolutionParams params{};

 private:
  void bind_operands() {
    Part parts[kConvolutionOperands];
    for (int i = 0; i < kConvolutionOperands; ++i) {
      if (tensors_[i].defined()) parts[i] = part_of(tensors_[i]);
    }
    bind_pages("convolution", launch_, parts);
    const auto first = [&](int i) {
      return tensors_[i].defined() ? static_cast<uint32_t>(offset_in(parts[i], tensors_[i])) : 0;
    };
    for (int i = 0; i < kConvolutionOperands; ++i) spec.binding[i] = static_cast<uint8_t>(parts[i].binding);
    params.x_first = first(kX);
    params.row_first = first(kRow);
    params.bias_first = first(kBias);
  }

  void dispatch(int64_t tasks, Chunks chunks) {
    TORCH_CHECK(tasks < (int64_t{1} << 31), "webgpu: convolution: more than 2^31 elements");
    params.tiles = static_cast<uint32_t>(tasks);
    params.chunk = chunks.chunk;
    launch_.grid[0] = chunks.groups;
    dispatch_grid();
  }

  void dispatch_grid() {
    if (!epilogue_) bind_operands();
    std::memcpy(launch_.params, &params, sizeof(params));
    launch_.param_words = sizeof(params) / 4;
    if (epilogue_) epilogue_->pass(launch_, epilogue_words_);
    set_key(launch_, Family::convolution, spec);
    launch_.print = &print_convolution_launch;
    runtime().stream.dispatch(launch_);
    if (epilogue_) epilogue_->copy_back();
  }

  Launch launch_;
  at::Tensor tensors_[kConvolutionOperands];
  std::optional<EpilogueBinder> epilogue_;
  at::ArrayRef<uint32_t> epilogue_words_;
};

}  // namespace torch_webgpu
