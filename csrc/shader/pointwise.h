// Prints the kernel of a pointwise op: operands and a formula in, a complete shader out.
#pragma once
#include <cstdint>
#include <string>

#include "shader/dtype.h"
#include "shader/source.h"

namespace torch_webgpu {

// A row of the table of pointwise ops. The formula is a WGSL expression of the operands a, b, c, ... and the scalars
// s0, s1, ..., and with has_index of the element's index, in functions that exist for every type (see specialise).
// A random row has also `block`, four random words, and `lane`: four neighbours share a block, each with a lane of its
// own; with own_block each element has a whole one.
struct PointwiseRow {
  const char* name;
  const char* formula;
  enum Flags : uint16_t {
    none = 0,
    returns_bool = 1,
    first_is_bool = 2,
    has_index = 4,
    random = 8,
    own_block = 16,
    wide_scalars = 256,    // a number from the host, as second operand, is not rounded to the common dtype
    narrow_scalars = 512,  // s0, s1, ... are numbers of the common dtype, not of the type that it computes as
    stored = 1024,         // computes in any type that is stored: moves, casts, comparisons
  };
  uint16_t flags = none;
  uint8_t scalars = 0;
  const char* library = nullptr;  // a file below wgsl/ with functions of the formula
  uint8_t words = 0;              // parameters that no conversion touches: word(0), word(1), ...
};

// Flags too: the dtypes an op takes, where not all.
constexpr uint16_t kFloats = 32, kNoBool = 64, kIntegers = 128;
// And those it takes beside the computed ones: all that are stored; float64 and the wider unsigned integers; float64
// and complex numbers; float64.
constexpr uint16_t kWithStored = 2048 | PointwiseRow::stored, kWithOrdered = 4096 | PointwiseRow::stored,
                   kWithSigned = 8192 | PointwiseRow::stored, kWithDouble = 16384 | PointwiseRow::stored;

// How an operand is read: from the parameters, four neighbours at a time, one value for four neighbours, one by one.
enum class Access : uint8_t { scalar, run, splat, strided };

// How the output is written.
enum class Store : uint8_t {
  quads,     // four neighbours per step; every operand is scalar, run or splat
  elements,  // one element of 4, 8 or 16 bytes
  words,     // all elements of a word, of a contiguous output of smaller elements
  atomics,   // one element of a strided output whose words are shared by invocations
};

constexpr uint32_t kMaxOperands = 8;

// Everything the text depends on: the exact key of the kernel, to the bit.
struct PointwiseSpec {
  const PointwiseRow* row;
  struct Operand {
    uint8_t dtype : 5;
    uint8_t access : 2;
    uint8_t : 1;
  } operands[kMaxOperands];  // the output first
  uint32_t bindings;         // 4 bits per operand: which buffer it is in
  uint8_t operand_count : 4;
  uint8_t binding_count : 4;
  uint8_t compute : 3;
  uint8_t store : 2;
  uint8_t partial : 1;  // the last quad is not whole
  uint8_t : 2;
  uint8_t rank;    // 0 when one index serves all operands
  uint8_t common;  // 1 + the DType that operands and the result are cut to, 0 where that changes nothing

  uint32_t binding(uint32_t operand) const { return (bindings >> (4 * operand)) & 15u; }
  DType dtype(uint32_t operand) const { return static_cast<DType>(operands[operand].dtype); }
  Access access(uint32_t operand) const { return static_cast<Access>(operands[operand].access); }
};
static_assert(sizeof(PointwiseSpec) == 24);

// Where things are in the parameters, in words. Offsets and strides of a run are in quads, all others in elements.
struct PointwiseParams {
  explicit PointwiseParams(const PointwiseSpec& spec)
      : operands(spec.operand_count),
        scalars(spec.row->scalars),
        raw(spec.row->words),
        rank(spec.rank),
        width(static_cast<Compute>(spec.compute) == Compute::c128 ? 4 : 2) {}
  static constexpr uint32_t kSteps = 0;  // quads, elements or words in all
  static constexpr uint32_t kChunk = 1;  // steps per workgroup
  static constexpr uint32_t kElements = 2;
  uint32_t offset(uint32_t operand) const { return 3 + operand; }
  uint32_t scalar(uint32_t index) const { return 3 + operands + width * index; }
  uint32_t value(uint32_t operand) const { return scalar(scalars + operand - 1); }
  uint32_t word(uint32_t index) const { return scalar(scalars + operands - 1) + index; }
  uint32_t size(uint32_t dim) const { return word(raw) + dim; }
  uint32_t stride(uint32_t operand, uint32_t dim) const { return size(rank * (1 + operand) + dim); }
  uint32_t words() const { return size(rank * (1 + operands)); }

  uint32_t operands, scalars, raw, rank;
  uint32_t width;  // words of a scalar
};

std::string print_pointwise(const PointwiseSpec& spec, const Target& target);
std::string label_pointwise(const PointwiseSpec& spec);  // "add(f32, i64) -> f32"

}  // namespace torch_webgpu
