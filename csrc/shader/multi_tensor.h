// Prints a kernel that works on many tensors in one dispatch: a formula, or a plain file of wgsl/.
//
// Buffers cannot be indexed in WGSL, so every operand has a column of bindings, from which a switch picks the tensor's.
// Operands that share a buffer share a column, whatever their dtypes: its elements are as wide as all of them allow. A
// table in the parameters has an entry per tensor: its first chunk, its length, its operands' places in
// their columns, and their offsets.
#pragma once
#include <cstdint>
#include <string>

#include "shader/dtype.h"
#include "shader/pointwise.h"
#include "shader/source.h"

namespace torch_webgpu {

// Operands are words separated by spaces: `name` is walked four elements at a time, `name:1` is one element. The file
// has `fn run(step: u32)`, which handles four neighbours of a tensor of `size` elements. It sees load_<name>,
// store_<name> and a function per parameter. One that `joins` also has `fn leave(lane: u32)`, which all lanes call when
// the workgroup's chunk is done.
struct MultiProgram {
  const char* name;
  const char* file;
  const char* operands;
  const char* params;
  bool joins = false;
};

constexpr uint32_t kMultiOperands = 9;
constexpr uint32_t kNoColumn = 15;
constexpr uint32_t kMultiParamWords = 2048;  // for the table

// Everything the text depends on: the exact key of the kernel, to the bit.
struct MultiSpec {
  const MultiProgram* program = nullptr;  // or
  const PointwiseRow* row = nullptr;      // a formula: its operands are out, a, b, c
  uint32_t variant = 0;                   // VARIANT in a file; of a formula see MultiFormula
  struct Operand {
    DType dtype = DType::f32;
    uint32_t column = kNoColumn;
    bool single = false;  // one element: the same for the whole tensor
    bool written = false;
  } operands[kMultiOperands];
  uint32_t counts[kMultiOperands] = {};  // bindings of each column
  bool aligned = true;                   // all walks begin at multiples of four elements

  uint32_t column_count() const;
  bool is_chosen(uint32_t operand) const;         // from several bindings
  uint32_t element_words(uint32_t column) const;  // 1, 2 or 4, of the array that the column's bindings are
  uint64_t operand_bits() const;  // with binding_bits, what distinguishes kernels of one program and variant
  uint64_t binding_bits() const;
  static MultiSpec unpack(uint64_t operand_bits, uint64_t binding_bits);
};

// Which numbers a formula takes: s0 or an operand, the same for all tensors or one of each tensor's own.
struct MultiFormula {
  static constexpr uint32_t kNumberIs = 3;  // 0, or the operand that is a number: 1 is a
  static constexpr uint32_t kOwnScalar = 4, kOwnNumber = 8;
};

// Where things are in the parameters, in words.
struct MultiParams {
  explicit MultiParams(const MultiSpec& spec);
  static constexpr uint32_t kTensors = 0, kChunk = 1, kNamed = 2;  // of a formula: s0, then the number
  static constexpr uint32_t kFirst = 0, kLength = 1, kPlaces = 2;  // within an entry
  static constexpr uint32_t kPlaceBits = 5, kPlacesPerWord = 6;
  uint32_t table, entry, place_words, own_number;
  uint32_t offset(uint32_t present) const { return kPlaces + place_words + present; }
};

std::string print_multi(const MultiSpec& spec, const Target& target);
std::string label_multi(const MultiSpec& spec);

}  // namespace torch_webgpu
