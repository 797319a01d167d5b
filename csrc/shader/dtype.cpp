#include "shader/dtype.h"

namespace torch_webgpu {

DType raw_dtype(uint32_t size_bytes) {
  switch (size_bytes) {
    case 1: return DType::u8;
    case 2: return DType::i16;
    case 4: return DType::i32;
    case 8: return DType::i64;
    default: return DType::c128;
  }
}

uint32_t size_bytes(DType dtype) {
  switch (dtype) {
    case DType::c128: return 16;
    case DType::i64:
    case DType::u64:
    case DType::f64:
    case DType::c64: return 8;
    case DType::f32:
    case DType::i32:
    case DType::u32:
    case DType::c32: return 4;
    case DType::f16:
    case DType::bf16:
    case DType::i16:
    case DType::u16: return 2;
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
    case DType::boolean: return "bool";
    case DType::f64: return "f64";
    case DType::u16: return "u16";
    case DType::u32: return "u32";
    case DType::u64: return "u64";
    case DType::f8e4m3fn: return "f8e4m3fn";
    case DType::f8e4m3fnuz: return "f8e4m3fnuz";
    case DType::f8e5m2: return "f8e5m2";
    case DType::f8e5m2fnuz: return "f8e5m2fnuz";
    case DType::c32: return "c32";
    case DType::c64: return "c64";
    default: return "c128";
  }
}

Compute compute_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
    case DType::f16:
    case DType::bf16:
    case DType::f8e4m3fn:
    case DType::f8e4m3fnuz:
    case DType::f8e5m2:
    case DType::f8e5m2fnuz: return Compute::f32;
    case DType::u32:  // an i32 does not hold all of them
    case DType::i64: return Compute::i64;
    case DType::boolean: return Compute::boolean;
    case DType::u64: return Compute::u64;
    case DType::f64: return Compute::f64;
    case DType::c32:
    case DType::c64: return Compute::c64;
    case DType::c128: return Compute::c128;
    default: return Compute::i32;
  }
}

const char* name(Compute type) {
  switch (type) {
    case Compute::f32: return "f32";
    case Compute::i32: return "i32";
    case Compute::i64: return "i64";
    case Compute::boolean: return "bool";
    case Compute::u64: return "u64";
    case Compute::f64: return "f64";
    case Compute::c64: return "c64";
    default: return "c128";
  }
}

uint32_t words_of(Compute type) {
  switch (type) {
    case Compute::f32:
    case Compute::i32:
    case Compute::boolean: return 1;
    case Compute::c128: return 4;
    default: return 2;
  }
}

const char* wgsl_type(Compute type) {
  const uint32_t words = words_of(type);
  return words == 1 ? name(type) : words == 2 ? "vec2<u32>" : "vec4<u32>";
}

std::string from_raw(DType dtype, const std::string& raw) {
  switch (dtype) {
    case DType::f32: return "bitcast<f32>(" + raw + ")";
    case DType::i32: return "bitcast<i32>(" + raw + ")";
    case DType::u32: return "i64_from_u32(" + raw + ")";
    case DType::i64:
    case DType::u64:
    case DType::f64:
    case DType::c64:
    case DType::c128: return raw;
    default: return std::string("load_") + name(dtype) + "(" + raw + ")";
  }
}

std::string to_raw(DType dtype, const std::string& value) {
  switch (dtype) {
    case DType::f32:
    case DType::i32: return "bitcast<u32>(" + value + ")";
    case DType::u32: return "(" + value + ").x";
    case DType::i64:
    case DType::u64:
    case DType::f64:
    case DType::c64:
    case DType::c128: return value;
    default: return std::string("store_") + name(dtype) + "(" + value + ")";
  }
}

// Between a complex and a real type the way leads through the type of its parts. The words of u64 are those of i64.
std::string convert(Compute from, Compute to, const std::string& value) {
  const auto call = [](Compute to, Compute from, const std::string& value) {
    return std::string(name(to)) + "_from_" + name(from) + "(" + value + ")";
  };
  const auto is_complex = [](Compute type) { return type == Compute::c64 || type == Compute::c128; };
  const auto part = [](Compute type) { return type == Compute::c64 ? Compute::f32 : Compute::f64; };
  if (from == to) return value;
  if (is_complex(from) && !is_complex(to) && to != Compute::boolean && to != part(from)) {
    return convert(part(from), to, call(part(from), from, value));
  }
  if (is_complex(to) && !is_complex(from) && from != part(to))
    return call(to, part(to), convert(from, part(to), value));
  if (from == Compute::u64 && to == Compute::i64) return value;
  if (from == Compute::u64 && (to == Compute::i32 || to == Compute::boolean)) return call(to, Compute::i64, value);
  if (to == Compute::u64 && from != Compute::f32 && from != Compute::f64) return convert(from, Compute::i64, value);
  return call(to, from, value);
}

}  // namespace torch_webgpu
