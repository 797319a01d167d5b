// Prints the kernels of convolutions: the forward, its transpose (the input's gradient) and the weight's gradient are
// forms of one gathered product.
#pragma once
#include <cstdint>
#include <string>

#include "shader/dtype.h"
#include "shader/epilogue.h"
#include "shader/source.h"

namespace torch_webgpu {

// Tiles of the output and of the weight's gradient compute in f32; elements of the output in any type.
enum class ConvolutionForm : uint8_t { output, weight, element };

enum ConvolutionOperand : uint8_t { kOut, kX, kRow, kBias, kConvolutionOperands };

struct ConvolutionSpec {
  const EpilogueText* epilogue;  // takes the elements of the result instead of a store; null for a store
  uint8_t form;                  // ConvolutionForm
  uint8_t rows;                  // rows per tile
  uint8_t shared : 1;            // the lanes of a subgroup load a tile's rows together
  uint8_t has_bias : 1;
  uint8_t packed : 1;                     // rows are weights in quads, as f32
  uint8_t has_gap : 1;                    // a transposed convolution that leaves elements out
  uint8_t quads : 1;                      // for kernels by lines: x and out are aligned quads
  uint8_t width;                          // of a line of the window, where a kernel takes lines at once; else 0
  uint8_t step;                           // for kernels by lines: stride from pixel to pixel
  uint8_t before;                         // by lines in quads: elements that the first pixel sees before its own
  uint8_t dtype[kConvolutionOperands];    // DType; out is of whole words
  uint8_t binding[kConvolutionOperands];  // binding of each operand
  uint8_t unused[2];
};
static_assert(sizeof(ConvolutionSpec) == 24);

// The words of a launch, which the kernel reads by these names; axes are depth, height, width. Strides are in elements.
struct ConvolutionParams {
  uint32_t rows, columns, channels, groups;  // rows and channels are those of a group
  uint32_t row_tiles, column_tiles, tiles, chunk;
  uint32_t lines, part_lines, out_part;  // of the weight's gradient: lines of pixels in all and in each partial sum
  uint32_t out_image, out_channel, x_image, x_channel, row_image, row_channel, row_step;
  uint32_t x_first, row_first, bias_first;  // offsets
  uint32_t out_size[3], phase_size[3], x_size[3], kernel[3], step[3];
  int32_t base[3], dilation[3], gap[3];
  uint32_t out_stride[3], x_stride[3], row_stride[3];
};
constexpr const char* kConvolutionWords[] = {
    "rows",      "columns",   "channels",    "groups",   "row_tiles", "column_tiles", "tiles",
    "chunk",     "lines",     "part_lines",  "out_part", "out_image", "out_channel",  "x_image",
    "x_channel", "row_image", "row_channel", "row_step", "x_first",   "row_first",    "bias_first"};
struct ConvolutionAxes {
  const char *name, *type;
};
constexpr ConvolutionAxes kConvolutionAxes[] = {{"out_size", "u32"}, {"phase_size", "u32"}, {"x_size", "u32"},
                                                {"kernel", "u32"},   {"step", "u32"},       {"base", "i32"},
                                                {"dilation", "i32"}, {"gap", "i32"},        {"out_stride", "u32"},
                                                {"x_stride", "u32"}, {"row_stride", "u32"}};
static_assert(sizeof(ConvolutionParams) <= 4 * kEpilogueWords);
static_assert(sizeof(ConvolutionParams) == 4 * (std::size(kConvolutionWords) + 3 * std::size(kConvolutionAxes)));

std::string print_convolution(const ConvolutionSpec& spec, const Target& target, Pages pages = {});
std::string label_convolution(const ConvolutionSpec& spec);

}  // namespace torch_webgpu
