// Which dtypes the device computes with, and which it only stores: moves, casts, compares.
#pragma once
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <initializer_list>

namespace torch_webgpu {

// Sets of dtypes, by ScalarType.
using DtypeSet = uint64_t;
constexpr DtypeSet set_of(std::initializer_list<at::ScalarType> types) {
  DtypeSet set = 0;
  for (const at::ScalarType type : types) set |= DtypeSet{1} << static_cast<int>(type);
  return set;
}
constexpr bool contains(DtypeSet set, at::ScalarType type) { return (set >> static_cast<int>(type)) & 1; }
constexpr DtypeSet kComputed =
    set_of({at::kFloat, at::kHalf, at::kBFloat16, at::kLong, at::kInt, at::kShort, at::kChar, at::kByte, at::kBool});
constexpr DtypeSet kUnsigned = set_of({at::kUInt16, at::kUInt32, at::kUInt64});
constexpr DtypeSet kComplex = set_of({at::kComplexHalf, at::kComplexFloat, at::kComplexDouble});
constexpr DtypeSet kStored =
    kComputed | kUnsigned | kComplex |
    set_of({at::kDouble, at::kFloat8_e4m3fn, at::kFloat8_e4m3fnuz, at::kFloat8_e5m2, at::kFloat8_e5m2fnuz});
constexpr DtypeSet kAny = ~DtypeSet{0};  // what moves elements by their size

}  // namespace torch_webgpu
