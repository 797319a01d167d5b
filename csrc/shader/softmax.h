// Prints the kernels of softmax, log_softmax and their backwards: two walks along each row, of which the
// second may find the row in registers.
#pragma once
#include <cstdint>
#include <string>

#include "shader/dtype.h"
#include "shader/kept.h"
#include "shader/source.h"

namespace torch_webgpu {

enum class SoftmaxKind : uint8_t { softmax, log_softmax, softmax_backward, log_softmax_backward };

constexpr uint32_t kSoftmaxOperands = 3;  // the result, then the input, or gradient and output

struct SoftmaxSpec {
  uint8_t kind;  // SoftmaxKind
  uint8_t operands;
  uint8_t dtype[kSoftmaxOperands];    // DType
  uint8_t binding[kSoftmaxOperands];  // binding of each operand
  uint8_t rank;                       // number of dimensions beside the row's
  uint8_t grouped;                    // a workgroup per row, not an invocation
  uint8_t quads;                      // four neighbours of a row are loaded at once
  Keep keep;                          // registers for rows in quads
  uint8_t team;                       // lanes per row where a workgroup takes several rows, or 0
  uint8_t unused[3];
};
static_assert(sizeof(SoftmaxSpec) == 16);

// Where things are in the parameters, in words. With quads, steps, offsets and strides are in quads.
struct SoftmaxParams {
  static constexpr uint32_t kRows = 0, kLength = 1, kChunk = 2, kFirst = 3;
  explicit SoftmaxParams(const SoftmaxSpec& spec) : rank(spec.rank) {}
  uint32_t offset(uint32_t operand) const { return kFirst + operand; }
  uint32_t row_stride(uint32_t operand) const { return kFirst + kSoftmaxOperands + operand; }
  uint32_t size(uint32_t dim) const { return kFirst + 2 * kSoftmaxOperands + dim; }
  uint32_t stride(uint32_t operand, uint32_t dim) const { return size(rank * (1 + operand) + dim); }
  uint32_t words() const { return size(rank * (1 + kSoftmaxOperands)); }

  uint32_t rank;
};

std::string print_softmax(const SoftmaxSpec& spec, const Target& target, Pages pages = {});
std::string label_softmax(const SoftmaxSpec& spec);

}  // namespace torch_webgpu
