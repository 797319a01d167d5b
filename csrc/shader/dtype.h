// How each dtype lives in a buffer and what it computes as. memory.h prints loads and stores of them.
#pragma once
#include <cstdint>
#include <string>

namespace torch_webgpu {

// Kernels of every family compute with the dtypes up to `boolean`. Those behind it are stored: the pointwise kernels
// move, cast and compare them, all other work on them is the CPU's.
enum class DType : uint8_t {
  f32,
  f16,
  bf16,
  i64,
  i32,
  i16,
  i8,
  u8,
  boolean,
  f64,
  u16,
  u32,
  u64,
  f8e4m3fn,
  f8e4m3fnuz,
  f8e5m2,
  f8e5m2fnuz,
  c32,  // a pair of f16
  c64,
  c128,
};

// The types WGSL code computes in. A smaller dtype computes as the next of these and is cut to size when stored. Those
// behind `boolean` have no arithmetic: only casts, comparisons and what a change of the sign bit does.
enum class Compute : uint8_t { f32, i32, i64, boolean, u64, f64, c64, c128 };

// A dtype of the same size whose copies keep every bit.
DType raw_dtype(uint32_t size_bytes);

uint32_t size_bytes(DType dtype);
const char* name(DType dtype);
Compute compute_type(DType dtype);

const char* name(Compute type);       // "f32", "i32", "i64", "bool", ...: the suffix of a type's functions
const char* wgsl_type(Compute type);  // a type of 8 or 16 bytes is a vector of words
uint32_t words_of(Compute type);      // that a scalar of the type takes in the parameters

// WGSL expressions. A raw element is a u32 with the element in its low bits, a vec2<u32> for 8 bytes, a vec4<u32> for
// 16.
std::string from_raw(DType dtype, const std::string& raw);  // -> value of compute_type(dtype)
std::string to_raw(DType dtype, const std::string& value);  // value of compute_type(dtype) ->
std::string convert(Compute from, Compute to, const std::string& value);

}  // namespace torch_webgpu
