// Prints the kernel of cat: several inputs side by side, each of as many rows as the output.
#pragma once
#include <cstdint>
#include <string>

#include "shader/source.h"

namespace torch_webgpu {

constexpr uint32_t kMaxJoined = 16;

// A unit is what moves at once: 4, 8 or 16 bytes, or an element of 1 or 2 where parts of a word meet.
struct JoinSpec {
  uint8_t count;
  uint8_t unit_bytes;
  uint8_t unused[6];
  uint8_t bindings[kMaxJoined];  // bindings of the inputs; the output has binding 0
};
static_assert(sizeof(JoinSpec) == 24);

// Where things are in the parameters, in words. All counts are of units.
struct JoinParams {
  static constexpr uint32_t kSteps = 0, kChunk = 1;  // units that are moved, or words of the whole output
  static constexpr uint32_t kWidth = 2;              // of a row, as far as these inputs fill it
  static constexpr uint32_t kBegin = 3;              // the column where they begin
  static constexpr uint32_t kOffset = 4, kStride = 5,
                            kElements = 6;  // of the output: its first row, and from row to row
  static constexpr uint32_t kInputs = 7;
  static constexpr uint32_t offset(uint32_t input) { return kInputs + 3 * input; }
  static constexpr uint32_t stride(uint32_t input) { return kInputs + 3 * input + 1; }
  static constexpr uint32_t end(uint32_t input) { return kInputs + 3 * input + 2; }  // the column behind its last
};

std::string print_join(const JoinSpec& spec, const Target& target);
std::string label_join(const JoinSpec& spec);

}  // namespace torch_webgpu
