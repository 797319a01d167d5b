// Prints the kernels of normalisations over rows that lie in memory one behind another: two walks along each row, of
// which the second may find the row in registers.
#pragma once
#include <cstdint>
#include <string>

#include "shader/dtype.h"
#include "shader/kept.h"
#include "shader/source.h"

namespace torch_webgpu {

enum class NormKind : uint8_t { forward, backward };

// Absent results are neither computed nor written; an absent weight is one, an absent bias zero.
enum class NormOperand : uint8_t {
  out,  // along a row, as the next two
  x,
  grad,
  weight,  // one row that all rows share, as the bias
  bias,
  mean,    // one number per row, as all further ones; the forward writes it, the backward reads it
  scale,   // one over the standard deviation, likewise
  total,   // the backward's sum of gradients
  moment,  // the forward's sum of squared distances from the mean, the backward's of gradients times distances
};
constexpr uint32_t kNormOperands = 9;

struct NormSpec {
  struct Place {
    uint8_t dtype : 4;
    uint8_t binding : 4;  // kNormAbsent where it is left out
  };
  NormKind kind;
  uint8_t root_mean_square : 1;  // distances are from zero, not from the mean
  uint8_t grouped : 1;           // a workgroup per row, not an invocation
  uint8_t quads : 1;             // four neighbours of a row are loaded at once
  uint8_t : 5;
  Place operands[kNormOperands];
  Keep keep;     // registers for rows in quads
  uint8_t team;  // lanes that share a row; 0 where a whole workgroup does
  uint8_t unused[3];
};
static_assert(sizeof(NormSpec) == 16);

constexpr uint32_t kNormAbsent = 15;

// Where things are in the parameters, in words. Row i's mean is number i / kShare % kPeriod. With quads, offsets of
// what runs along a row are in quads.
struct NormParams {
  static constexpr uint32_t kRows = 0, kLength = 1, kChunk = 2, kShare = 3, kPeriod = 4, kEpsilon = 5, kOffsets = 6,
                            kWords = kOffsets + kNormOperands;
};

bool runs_along(NormOperand operand);
std::string print_norm(const NormSpec& spec, const Target& target, Pages pages = {});
std::string label_norm(const NormSpec& spec);

}  // namespace torch_webgpu
