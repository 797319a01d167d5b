// Prints the kernel of a reduction: a row's identity, map, combine and finish in, a complete shader out.
#pragma once
#include <cstdint>
#include <string>

#include "shader/dtype.h"
#include "shader/source.h"

namespace torch_webgpu {

// A row of the table of reductions. Texts are WGSL in functions that exist for every type (see specialise); scalar() is
// the launch's one number, an f32.
struct ReduceRow {
  const char* name;
  const char* fields;    // types of the accumulator's fields x, y, z: T the compute type, u a u32, f an f32
  const char* identity;  // the accumulator of nothing, as its fields
  const char* map;       // the accumulator of one element `a` at position `index`, as its fields
  const char* combine;   // statements that return the accumulator of p and q
  const char* finish;    // the result, of the accumulator p of `count` elements
  enum Result : uint8_t { value, index } result = value;
  const char* second = nullptr;  // another result of the same accumulator
  Result second_result = value;
  const char* library = nullptr;  // a file below wgsl/ with functions of the texts
};

// Which four elements a step takes, where four neighbours in memory can be loaded at once.
enum class Quads : uint8_t {
  none,
  along,   // four of one output: the reduction runs along memory
  across,  // one each of four outputs that lie side by side
};

struct ReduceSpec {
  const ReduceRow* row;
  uint8_t input, output, second;  // DType
  uint8_t compute;                // Compute
  uint8_t kept_rank, reduced_rank;
  uint8_t grouped : 1;      // a workgroup per output, not an invocation
  uint8_t reads_parts : 1;  // the elements are accumulators
  uint8_t writes_parts : 1;
  uint8_t quads : 2;
  uint8_t edges : 1;    // of quads along memory the first and the last may be partly of other outputs
  uint8_t columns : 1;  // across outputs: several quads of them per lane
  uint8_t lines : 1;    // outputs side by side, whose rows several lanes share
  uint8_t team;         // lanes per output where a workgroup takes several, or 0

  Quads width() const { return static_cast<Quads>(quads); }
};
static_assert(sizeof(ReduceSpec) == 16);

// Where things are in the parameters, in words. With quads, sizes of the dimension they lie in, offset and strides of
// the input are in quads (but for `edges`, where only steps are).
struct ReduceParams {
  static constexpr uint32_t kOutputs = 0, kReduced = 1, kInputOffset = 2, kOutputOffset = 3, kSplits = 4, kSpan = 5,
                            kChunk = 6, kCount = 7,  // kCount: elements per output, over all parts
      kSecondOffset = 8, kScalar = 9, kFirst = 10;
  explicit ReduceParams(const ReduceSpec& spec) : kept(spec.kept_rank), reduced(spec.reduced_rank) {}
  uint32_t kept_size(uint32_t dim) const { return kFirst + dim; }
  uint32_t kept_input_stride(uint32_t dim) const { return kFirst + kept + dim; }
  uint32_t kept_output_stride(uint32_t dim) const { return kFirst + 2 * kept + dim; }
  uint32_t reduced_size(uint32_t dim) const { return kFirst + 3 * kept + dim; }
  uint32_t reduced_stride(uint32_t dim) const { return kFirst + 3 * kept + reduced + dim; }
  uint32_t words() const { return kFirst + 3 * kept + 2 * reduced; }

  uint32_t kept, reduced;
};

// Quads of outputs that a lane takes with `columns`: what it loads of a row then fills cache lines side by side.
constexpr uint32_t kColumns = 4;
// With `lines`: steps of outputs that a workgroup takes.
constexpr uint32_t kSide = 64;

uint32_t accumulator_words(const ReduceRow& row, Compute type);
uint32_t reduce_workgroup(const ReduceSpec& spec, const Target& target);
std::string print_reduce(const ReduceSpec& spec, const Target& target);
std::string label_reduce(const ReduceSpec& spec);

}  // namespace torch_webgpu
