// Prints the kernel of a matrix product: operands with their dtypes in, a complete shader out.
#pragma once
#include <cstdint>
#include <string>

#include "shader/dtype.h"
#include "shader/source.h"

namespace torch_webgpu {

// out = s0 * (a @ b) + s1 * c, batched; c is optional.
struct MatmulSpec {
  uint8_t dtype[4];    // of out, a, b, c
  uint8_t binding[4];  // which buffer each is in; out is in the first
  uint8_t compute;     // Compute
  uint8_t has_c;
  uint8_t unused[6];
};
static_assert(sizeof(MatmulSpec) == 16);

struct MatmulParams {
  static constexpr uint32_t kRows = 0, kColumns = 1, kDepth = 2, kBatches = 3, kChunk = 4, kScalars = 5, kOperands = 9,
                            kWords = 25;
  // An operand's offset, then its strides by batch, row and column.
  static constexpr uint32_t offset(uint32_t operand) { return kOperands + 4 * operand; }
};

std::string print_matmul(const MatmulSpec& spec, const Target& target);
std::string label_matmul(const MatmulSpec& spec);

}  // namespace torch_webgpu
