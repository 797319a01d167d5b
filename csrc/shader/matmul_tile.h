// Prints the products of GPUs: register tiles fed from workgroup memory, thin products, and the sum of a product's
// parts. What a lane keeps is written out, since not every driver unrolls loops over arrays.
#pragma once
#include <cstdint>
#include <string>

#include "shader/matmul.h"
#include "shader/memory.h"

namespace torch_webgpu {

// A workgroup computes rows x columns of the product, each lane lane_rows x lane_columns of it, from slices of the
// operands that so many steps are in. Where both operands are halves, they stay packed, and slices may be longer.
struct MatmulTile {
  const char* name;
  uint32_t rows, columns, lane_rows, lane_columns, slice, half_slice;
  uint32_t buffers = 1;  // 2: the next slice is stored while this one is used

  constexpr uint32_t lanes() const { return rows / lane_rows * (columns / lane_columns); }
};
constexpr MatmulTile kMatmulTiles[] = {
    {"32x32", 32, 32, 4, 4, 32, 32},
    {"64x64", 64, 64, 8, 4, 16, 32},
    {"64x64 by 64", 64, 64, 8, 8, 16, 16},
    {"128x128", 128, 128, 8, 8, 16, 32},
    {"128x128 twice", 128, 128, 8, 8, 8, 8, 2},
};

// One operand: a, whose lines are rows, or b, whose lines are columns. The printer of the head declares at_<name>,
// <limit> and the strides. Where elements are gathered, which both operands are or none, it declares instead, for the
// operand's prefix P:
//   P_line(batch, line)    what depends on the line alone, also beyond the last
//   P_within(k)            what depends on the step's place in the slice alone
//   P_step(walk, within)   what depends on the step
//   P_at(line, step)       the index of the element in memory
//   P_inside(line, step)   whether it counts; a 0 takes its place otherwise
// and for both depth_of(batch), walk_at(batch, step) and next_walk(walk), which is SLICE steps further. Results go to
// store_four(batch, row, column, product, places), where places_of(batch, column) is the same for all rows.
struct MatmulSide {
  char name;          // 'a' or 'b'
  const char* limit;  // the number of lines
  DType dtype;
  Walk walk;
  Memory memory;
  std::string step;           // the stride from step to step
  std::string gathered = {};  // the prefix, or nothing
};

// Whether both operands stay packed in workgroup memory.
bool stay_packed(const MatmulTile& tile, DType a, Walk walk_a, DType b, Walk walk_b);
std::string print_matmul_tile(const MatmulTile& tile, const MatmulSide& a, const MatmulSide& b);

// A vec4<f32> as a quad in memory, without branches: as quad_of_floats, by functions of the file "halves".
std::string packed_quad_of_floats(DType dtype, const std::string& value);

// Up to `rows` lines of a with lines of b: those lie along memory, or side by side. Functions four_a and four_b load
// four steps of a line of a, and four steps of a line or one step of four lines of b.
constexpr uint32_t kThinTeam = 16, kThinLines = 4;  // lanes along a line of b, and lines of b that a lane holds
constexpr uint32_t kThinLanes = 256;  // where lines lie side by side: teams of lanes share the steps, four lines a lane
constexpr uint32_t thin_team(uint32_t rows) { return rows > 4 ? 32 : 64; }
std::string print_matmul_thin_along(uint32_t rows, bool a_in_quads, bool b_in_quads);
std::string print_matmul_thin_across(uint32_t rows, bool a_in_quads);

// Sums the parts of a product, which lie dense in a, one behind the other.
constexpr uint32_t kJoinQuads = 16;  // of a workgroup
std::string print_matmul_join(const MatmulSide& parts, bool in_quads);

}  // namespace torch_webgpu
