// Convolutions of floats on GPUs as products of gathered operands, by the tiles of shader/matmul_tile.h.
#pragma once
#include <string>

#include "families/convolution.h"

namespace torch_webgpu {

// A kernel by the row of kMatmulTiles that it takes.
struct ConvolutionTile {
  const char* name;
  uint8_t tile;
  int64_t rows;    // channels that come out of a group, at least
  int64_t groups;  // workgroups, at least
};

// A convolution as a product of a weight's rows with pixels. `out` may be a layout without memory.
struct OutputProblem {
  const Window& window;
  bool transposed;
  const View& out;
  const View& x;
  const at::Tensor& kernel;
  const Weight& weight;
};

// The kernel that suits, or null where none does.
const ConvolutionTile* tile_of(const OutputProblem& problem);
// By the number that tile_candidates() gives it; null where it cannot compute the convolution.
const ConvolutionTile* tile_of(const OutputProblem& problem, int64_t number);
Candidates tile_candidates(const OutputProblem& problem, int64_t first_number);

void convolve_tiled(const ConvolutionTile& tile, const OutputProblem& problem, const at::Tensor& bias,
                    const EpilogueCall* call);

// The gradient of a weight. False, with nothing done, where no tile suits.
bool convolve_weight_tiled(const Window& window, const at::Tensor& grad_weight, const View& grad, const View& x);

}  // namespace torch_webgpu
