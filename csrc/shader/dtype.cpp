#include "shader/dtype.h"

namespace torch_webgpu {

DType raw_dtype(uint32_t size_bytes) {
  switch (size_bytes) {
    case 1: return DType::u8;
    case 2: return DType::i16;
    case 4: return DType::i32;
    default: return DType::i64;
  }
}

uint32_t size_bytes(DType dtype) {
  switch (dtype) {
    case DType::i64: return 8;
    case DType::f32:
    case DType::i32: return 4;
    case DType::f16:
    case DType::bf16:
    case DType::i16: return 2;
    default: return 1;
  }
}

const char* name(DType dtype) {
  switch (dtype) {
    case DType::f32: return "f32";
    case DType::f16: return "f16";
    case DType::bf16: return "bf16";
    case DType::i64: return "i64";
    case DType::i32: return "i32";
    case DType::i16: return "i16";
    case DType::i8: return "i8";
    case DType::u8: return "u8";
    default: return "bool";
  }
}

Compute compute_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
    case DType::f16:
    case DType::bf16: return Compute::f32;
    case DType::i64: return Compute::i64;
    case DType::boolean: return Compute::boolean;
    default: return Compute::i32;
  }
}

const char* name(Compute type) {
  switch (type) {
    case Compute::f32: return "f32";
    case Compute::i32: return "i32";
    case Compute::i64: return "i64";
    default: return "bool";
  }
}

const char* wgsl_type(Compute type) { return type == Compute::i64 ? "vec2<u32>" : name(type); }

std::string from_raw(DType dtype, const std::string& raw) {
  switch (dtype) {
    case DType::f32: return "bitcast<f32>(" + raw + ")";
    case DType::i32: return "bitcast<i32>(" + raw + ")";
    case DType::i64: return raw;
    default: return std::string("load_") + name(dtype) + "(" + raw + ")";
  }
}

std::string to_raw(DType dtype, const std::string& value) {
  switch (dtype) {
    case DType::f32:
    case DType::i32: return "bitcast<u32>(" + value + ")";
    case DType::i64: return value;
    default: return std::string("store_") + name(dtype) + "(" + value + ")";
  }
}

std::string convert(Compute from, Compute to, const std::string& value) {
  if (from == to) return value;
  return std::string(name(to)) + "_from_" + name(from) + "(" + value + ")";
}

}  // namespace torch_webgpu
