// Prints the kernels of a matrix product: operands with their dtypes in, a complete shader out.
#pragma once
#include <cstdint>
#include <string>

#include "shader/dtype.h"
#include "shader/epilogue.h"
#include "shader/source.h"

namespace torch_webgpu {

// The formula for an element of a @ b before it is stored: a WGSL expression of `product`, the scalars s0 and s1 and,
// where it is added, the element `c` of the third operand.
struct Epilogue {
  const char* name;
  const char* formula;
  bool adds = false;
  const char* library = nullptr;       // a file below wgsl/ with functions of the formula
  const EpilogueText* text = nullptr;  // takes the place of the formula and of the store
};

enum class MatmulKernel : uint8_t {
  tile,      // an invocation per 4 x 4 tile: small products, and any type
  shared,    // a workgroup per 32 x 32 tile in shared memory: GPUs, for any type
  subgroup,  // a subgroup of 8 lanes per tile of 32 columns in registers: software adapters
  vector,    // a workgroup per few rows of a product with a vector
  // In shader/matmul_tile.h, for GPUs:
  tiled,  // a workgroup per tile of kMatmulTiles
  thin,   // all of the few rows at once, with a few columns per workgroup
  join,   // the sum of a product's parts
};

// How four elements of an operand that lie side by side are loaded at once. A line is a row of a or a column of b; its
// steps are what is summed over.
enum class Walk : uint8_t {
  elements,         // not at all
  along,            // four steps of a line
  across,           // one step of four lines
  elements_across,  // not at all; but lines, not steps, are neighbours (MatmulKernel::tiled)
};

constexpr const char* kWalkNames[] = {"elements", "quads along", "quads across", "elements across"};

struct MatmulSpec {
  const Epilogue* epilogue;
  uint8_t kernel;      // MatmulKernel
  uint8_t compute;     // Compute
  uint8_t dtype[4];    // DTypes of out, a, b, c
  uint8_t binding[4];  // binding of each; out has the first
  uint8_t walk[4];     // Walk; of out and c `across` means four neighbours in a row at once, of c `along` one for all
  uint8_t lines;       // rows of a per lane: 1, 2 or 4; of a thin product its rows; of tiles the row of kMatmulTiles
  uint8_t ragged : 1;  // the last four steps are not all there
  uint8_t same_c : 1;  // c is the same in every row
  uint8_t transposed : 1;  // the kernel's rows are the columns of what it stores by a text of its own
};
static_assert(sizeof(MatmulSpec) == 24);

struct MatmulParams {
  static constexpr uint32_t kRows = 0, kColumns = 1, kDepth = 2, kBatches = 3, kChunk = 4, kScalars = 5, kOperands = 9,
                            kWords = 25;
  // An operand's offset, then its strides: by batch; by row and column (out, c) or by line and step (a, b).
  static constexpr uint32_t offset(uint32_t operand) { return kOperands + 4 * operand; }
};

constexpr uint32_t kMatmulTile = 4;          // sides of a tile of MatmulKernel::tile
constexpr uint32_t kMatmulShared = 32;       // and of MatmulKernel::shared
constexpr uint32_t kMatmulSubgroup = 8;      // lanes of MatmulKernel::subgroup, each with four columns
constexpr uint32_t kMatmulSharedLanes = 64;  // lanes of MatmulKernel::shared

std::string print_matmul(const MatmulSpec& spec, const Target& target);
std::string label_matmul(const MatmulSpec& spec);

}  // namespace torch_webgpu
