// Many values into few places, in the order of the indices: deterministic on every adapter.
#pragma once
#include "families/indexed.h"

namespace torch_webgpu {

enum class Accumulate { sum, product, maximum, minimum, mean, replace };

// Where entry n of the index space goes: `keys` holds pairs {destination, n}.
struct Destinations {
  at::Tensor pairs;
  int64_t count;  // number of destinations; pairs with this key are skipped
};

// The pairs of an index space of `sizes`. Its place moves by `strides` (of destinations), and by the indices that the
// caller adds by index(); entries of the key `skipped` go nowhere.
Indexed destination_keys(const IndexedRow& row, Destinations& destinations, at::IntArrayRef sizes,
                         at::IntArrayRef strides, int64_t skipped = -1);
#define DESTINATION_BODY "return vec2<u32>(select(x(0u), at, valid && at != x(1u)), step);"
constexpr IndexedRow destination_row(const char* name, uint8_t flags = 0) {
  return {name, DESTINATION_BODY, static_cast<uint8_t>(IndexedRow::raw | flags), 2, 1};
}

// out, seen as [destinations, columns], takes in source, [entries, columns]; both are contiguous. Without
// `include_self` the first value to arrive replaces what was there. With `rounds` each step is rounded to the dtype, as
// the CPU does in all but the scatters.
void accumulate(Accumulate how, const at::Tensor& out, const at::Tensor& source, Destinations destinations,
                int64_t columns, bool include_self = true, bool rounds = true);

}  // namespace torch_webgpu
