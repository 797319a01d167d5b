// The launcher of kernels that normalise contiguous rows.
#pragma once
#include <ATen/core/Tensor.h>

#include "shader/norm.h"

namespace torch_webgpu {

// Contiguous operands of the kernels in shader/norm.h; what stays undefined is left out.
struct NormRows {
  const char* name;  // the op, for error messages
  int64_t rows, length;
  at::Tensor out{}, x{}, grad{}, weight{}, bias{}, mean{}, scale{}, total{}, moment{};
  double epsilon = 0;
  bool root_mean_square = false;
  // `share` consecutive rows use one mean; means repeat after `period` rows (0: never).
  int64_t share = 1, period = 0;
};
void norm_rows(NormKind kind, const NormRows& norm);

}  // namespace torch_webgpu
