// Teams: on a GPU the lanes of a workgroup that share a row, where rows are too short for all of them.
#pragma once
#include <bit>
#include <cstdint>

namespace torch_webgpu {

// A power of two, with two steps of the row or more for each lane; 0 where a whole workgroup takes the row.
inline uint8_t team_of(int64_t steps, uint32_t workgroup) {
  const uint64_t lanes = std::bit_ceil(static_cast<uint64_t>(steps) / 2 + 1) / 2;
  if (lanes >= workgroup) return 0;
  return static_cast<uint8_t>(lanes < 4 ? 4 : lanes);
}

}  // namespace torch_webgpu
