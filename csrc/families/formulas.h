// The rows of the tables by the names of their ops, for those who write kernels of their own from the same formulas.
#pragma once
#include <deque>
#include <string>

#include "shader/pointwise.h"

namespace torch_webgpu {

struct ListedFormula {
  std::string op;  // PyTorch's name and overload, "add_Tensor", or the name of its stub, "sigmoid_stub"
  const PointwiseRow* row;
};

// Called where a row is registered; the row lives as long as the process.
void list_formula(const char* op, const PointwiseRow& row);
const std::deque<ListedFormula>& listed_formulas();

}  // namespace torch_webgpu
