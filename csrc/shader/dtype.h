// How each dtype lives in a buffer and what it computes as. memory.h prints loads and stores of them.
#pragma once
#include <cstdint>
#include <string>

namespace torch_webgpu {

enum class DType : uint8_t { f32, f16, bf16, i64, i32, i16, i8, u8, boolean };

// The types WGSL code computes in. A smaller dtype computes as the next of these and is cut to size when stored.
enum class Compute : uint8_t { f32, i32, i64, boolean };

// A dtype of the same size whose copies keep every bit.
DType raw_dtype(uint32_t size_bytes);

uint32_t size_bytes(DType dtype);
const char* name(DType dtype);
Compute compute_type(DType dtype);

const char* name(Compute type);       // "f32", "i32", "i64", "bool": the suffix of a type's functions
const char* wgsl_type(Compute type);  // i64 is a pair of words

// WGSL expressions. A raw element is a u32 with the element in its low bits, or a vec2<u32> for 8 bytes.
std::string from_raw(DType dtype, const std::string& raw);  // -> value of compute_type(dtype)
std::string to_raw(DType dtype, const std::string& value);  // value of compute_type(dtype) ->
std::string convert(Compute from, Compute to, const std::string& value);

}  // namespace torch_webgpu
