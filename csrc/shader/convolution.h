// Prints the kernels of convolutions: the forward, its transpose (the input's gradient) and the weight's gradient are
// forms of one gathered product.
#pragma once
#include <cstdint>
#include <string>

#include "shader/dtype.h"
#include "shader/epilogue.h"
#include "shader/source.h"

namespace torch_webgpu {

// Tiles of the output and of the weight's gradient compute in f32; elements of the output in any type. The last two are
// for GPUs: products by the tiles of shader/matmul_tile.h.
enum class ConvolutionForm : uint8_t { output, weight, element, tiled_output, tiled_weight };

enum ConvolutionOperand : uint8_t { kOut, kX, kRow, kBias, kConvolutionOperands };

struct ConvolutionSpec {
  const EpilogueText* epilogue;  // takes the elements of the result instead of a store; null for a store
  uint8_t form;                  // ConvolutionForm
  uint8_t rows;                  // rows per tile; of tiled forms the row of kMatmulTiles
  uint8_t shared : 1;            // the lanes of a subgroup load a tile's rows together
  uint8_t has_bias : 1;
  uint8_t packed : 1;                     // rows are weights in quads, as f32
  uint8_t has_gap : 1;                    // a transposed convolution that leaves elements out
  uint8_t quads : 1;                      // by lines: x and out are aligned quads; of tiled forms: out is
  uint8_t whole : 1;                      // tiled_output: slices lie within one tap
  uint8_t turned : 1;                     // tiled_output: rows are pixels; tiled_weight: taps are outside of channels
  uint8_t width;                          // of a line of the window, where a kernel takes lines at once; else 0
  uint8_t step;                           // for kernels by lines: stride from pixel to pixel
  uint8_t before;                         // by lines in quads: elements that the first pixel sees before its own
  uint8_t dtype[kConvolutionOperands];    // DType; out is of whole words
  uint8_t binding[kConvolutionOperands];  // binding of each operand
  uint8_t axes : 2;                       // of tiled forms: 1 to 3, the last ones
  uint8_t walk_x : 2, walk_row : 2;       // of tiled forms: Walk of the operand, as in shader/matmul.h
  uint8_t unused;
};
static_assert(sizeof(ConvolutionSpec) == 24);

// The words of a launch, which the kernel reads by these names; axes are depth, height, width. Strides are in elements.
struct ConvolutionParams {
  uint32_t rows, columns, channels, groups;  // rows and channels are those of a group
  uint32_t row_tiles, column_tiles, tiles, chunk;
  uint32_t lines, part_lines, out_part;  // of the weight's gradient: lines, tiled pixels, in all and in a partial sum
  uint32_t out_image, out_channel, x_image, x_channel, row_image, row_channel, row_step;
  uint32_t x_first, row_first, bias_first;  // offsets
  uint32_t out_size[3], phase_size[3], x_size[3], kernel[3], step[3];
  int32_t base[3], dilation[3], gap[3];
  uint32_t out_stride[3], x_stride[3], row_stride[3];
  // Tiled, with a gap: every tap_step-th tap meets a phase, and takes x so far from the one before.
  uint32_t tap_step[3], tap_inverse[3];
  int32_t shift_step[3];
};
constexpr const char* kConvolutionWords[] = {
    "rows",      "columns",   "channels",    "groups",   "row_tiles", "column_tiles", "tiles",
    "chunk",     "lines",     "part_lines",  "out_part", "out_image", "out_channel",  "x_image",
    "x_channel", "row_image", "row_channel", "row_step", "x_first",   "row_first",    "bias_first"};
struct ConvolutionAxes {
  const char *name, *type;
};
constexpr ConvolutionAxes kConvolutionAxes[] = {
    {"out_size", "u32"},   {"phase_size", "u32"}, {"x_size", "u32"},      {"kernel", "u32"},     {"step", "u32"},
    {"base", "i32"},       {"dilation", "i32"},   {"gap", "i32"},         {"out_stride", "u32"}, {"x_stride", "u32"},
    {"row_stride", "u32"}, {"tap_step", "u32"},   {"tap_inverse", "u32"}, {"shift_step", "i32"}};
constexpr size_t kTiledAxes = 3;  // the last ones, of the tiled forms alone
static_assert(sizeof(ConvolutionParams) <= 4 * kEpilogueWords);
static_assert(sizeof(ConvolutionParams) == 4 * (std::size(kConvolutionWords) + 3 * std::size(kConvolutionAxes)));

constexpr bool is_tiled(ConvolutionForm form) {
  return form == ConvolutionForm::tiled_output || form == ConvolutionForm::tiled_weight;
}

std::string print_convolution(const ConvolutionSpec& spec, const Target& target, Pages pages = {});
std::string label_convolution(const ConvolutionSpec& spec);

}  // namespace torch_webgpu
