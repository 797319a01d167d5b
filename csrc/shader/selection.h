// Prints the kernels of median and mode: an element of each row, found by counting.
#pragma once
#include <cstdint>
#include <string>

#include "shader/dtype.h"
#include "shader/source.h"

namespace torch_webgpu {

enum class SelectionKind : uint8_t { median, nanmedian, mode, mode_of_sorted };

struct SelectionSpec {
  uint8_t kind;   // SelectionKind
  uint8_t dtype;  // DType
  uint8_t unused[6];
};

// Where things are in the parameters, in words. Rows and both results are contiguous.
struct SelectionParams {
  static constexpr uint32_t kRows = 0, kLength = 1, kChunk = 2, kInput = 3, kWords = 4;
};

std::string print_selection(const SelectionSpec& spec, const Target& target, Pages pages = {});
std::string label_selection(const SelectionSpec& spec);

}  // namespace torch_webgpu
