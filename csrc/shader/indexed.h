// Prints kernels that reach elements by computed places: an iteration space, operands with strides over it, and a body.
#pragma once
#include <cstdint>
#include <string>

#include "shader/dtype.h"
#include "shader/source.h"

namespace torch_webgpu {

// A row of a table of such ops. The body is WGSL that runs once per step of the iteration space. It sees the
// coordinates d0, d1, ... (innermost first), each operand's place i0, i1, ..., load1(place), ..., the op's own words
// x(0u), ... (constant(0u) where they are a value of the output's type), rounded(value), what a store would leave of
// it, and, if the op takes index tensors, `at`, the place of operand `base` moved by them, and `valid`, false where one
// is out of range. It returns the value of operand 0 at i0; with `acts` it stores by itself, by store(place, value).
struct IndexedRow {
  const char* name;
  const char* body;
  enum Flags : uint8_t {
    none = 0,
    acts = 1,
    raw = 2,      // moves bits: values are u32, vec2<u32> or vec4<u32>, whatever the dtype
    wraps = 4,    // a negative index counts from the end
    merges = 8,   // blind to coordinates: dimensions may be joined
    checks = 32,  // calls resolve() by itself, on indices that are plain operands
    runs = 16,    // raw, and blind to single elements: neighbours may be moved as one wide element
  };
  uint8_t flags = none;
  uint8_t values = 2;             // operands of the op's own type, the output first
  uint8_t base = 1;               // the operand whose offset the indices change
  const char* library = nullptr;  // files below wgsl/ with functions of the body, by spaces
};

constexpr uint32_t kMaxIndexedOperands = 8;

// The element type of an operand: a dtype, converted when loaded, or raw bits of a size.
enum class Element : uint8_t { raw1 = 9, raw2, raw4, raw8, raw16 };  // below: a DType
inline Element element_of(DType dtype) { return static_cast<Element>(dtype); }
Element raw_element(uint32_t size_bytes);
uint32_t size_bytes(Element element);

enum class IndexedStore : uint8_t { elements, words, atomics, exchange };

struct IndexedSpec {
  const IndexedRow* row;
  uint32_t elements;  // 4 bits per operand
  uint32_t bindings;  // 4 bits per operand
  uint8_t operand_count : 4;
  uint8_t index_count : 4;  // the last operands
  uint8_t binding_count : 4;
  uint8_t compute : 2;
  uint8_t store : 2;
  uint8_t rank : 7;
  uint8_t still : 1;  // indices are the same for all of a run
  uint8_t run;        // neighbours along the innermost dimension per invocation: they share the way to their places
  uint8_t unused[4];

  Element element(uint32_t operand) const { return static_cast<Element>((elements >> (4 * operand)) & 15u); }
  bool reports() const { return index_count > 0 || (row->flags & IndexedRow::checks); }
  uint32_t binding(uint32_t operand) const { return (bindings >> (4 * operand)) & 15u; }
};
static_assert(sizeof(IndexedSpec) == 24);

// Where things are in the parameters, in words. Offsets and strides are in elements.
struct IndexedParams {
  explicit IndexedParams(const IndexedSpec& spec) : operands(spec.operand_count), rank(spec.rank) {}
  static constexpr uint32_t kReporter = 0, kSteps = 1, kChunk = 2, kElements = 3;
  uint32_t offset(uint32_t operand) const { return 4 + operand; }
  uint32_t size(uint32_t dim) const { return 4 + operands + dim; }
  uint32_t stride(uint32_t operand, uint32_t dim) const { return size(rank * (1 + operand) + dim); }
  uint32_t extra() const { return size(rank * (1 + operands)); }

  uint32_t operands, rank;
};
constexpr uint32_t kWordsPerIndex = 3;  // size, stride and dimension of what it indexes: the first extra words

std::string print_indexed(const IndexedSpec& spec, const Target& target, Pages pages = {});
std::string label_indexed(const IndexedSpec& spec);

}  // namespace torch_webgpu
