#include "families/tensor.h"

#include <ATen/EmptyTensor.h>

#include <array>

namespace torch_webgpu {

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

at::Tensor empty_tensor(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType dtype,
                        std::optional<at::MemoryFormat> format) {
  if (strides.empty()) return at::Tensor(at::detail::empty_generic(sizes, allocator(), kKeys, dtype, format));
  return at::Tensor(at::detail::empty_strided_generic(sizes, strides, allocator(), kKeys, dtype));
}

namespace {

// The DType of each ScalarType, plus one; 0 where there is none.
constexpr auto kDTypes = [] {
  std::array<uint8_t, 64> table{};
  const auto set = [&](at::ScalarType type, DType dtype) { table[static_cast<size_t>(type)] = 1 + uint8_t(dtype); };
  set(at::kFloat, DType::f32);
  set(at::kHalf, DType::f16);
  set(at::kBFloat16, DType::bf16);
  set(at::kLong, DType::i64);
  set(at::kInt, DType::i32);
  set(at::kShort, DType::i16);
  set(at::kChar, DType::i8);
  set(at::kByte, DType::u8);
  set(at::kBool, DType::boolean);
  set(at::kDouble, DType::f64);
  set(at::kUInt16, DType::u16);
  set(at::kUInt32, DType::u32);
  set(at::kUInt64, DType::u64);
  set(at::kFloat8_e4m3fn, DType::f8e4m3fn);
  set(at::kFloat8_e4m3fnuz, DType::f8e4m3fnuz);
  set(at::kFloat8_e5m2, DType::f8e5m2);
  set(at::kFloat8_e5m2fnuz, DType::f8e5m2fnuz);
  set(at::kComplexHalf, DType::c32);
  set(at::kComplexFloat, DType::c64);
  set(at::kComplexDouble, DType::c128);
  return table;
}();

}  // namespace

std::optional<DType> stored_dtype(at::ScalarType type) {
  const uint8_t number = kDTypes[static_cast<size_t>(type)];
  return number ? std::optional(static_cast<DType>(number - 1)) : std::nullopt;
}

std::optional<DType> dtype_of(at::ScalarType type) {
  const auto known = stored_dtype(type);
  return known && *known <= DType::boolean ? known : std::nullopt;
}

namespace {

[[noreturn]] void throw_not_computed(at::ScalarType dtype, const char* op) {
  throw NotComputed({__func__, __FILE__, static_cast<uint32_t>(__LINE__)},
                    c10::str("\"", op, "\" not implemented for '", toString(dtype), "' on webgpu"));
}

}  // namespace

DType kernel_dtype(at::ScalarType dtype, const char* op) {
  const auto known = dtype_of(dtype);
  if (!known) [[unlikely]]
    throw_not_computed(dtype, op);
  return *known;
}

DType stored_dtype(at::ScalarType dtype, const char* op) {
  const auto known = stored_dtype(dtype);
  if (!known) [[unlikely]]
    throw_not_computed(dtype, op);
  return *known;
}

at::Scalar fitted(at::ScalarType dtype, const at::Scalar& value) {
  switch (dtype) {
    case at::kByte: return value.to<uint8_t>();
    case at::kChar: return value.to<int8_t>();
    case at::kShort: return value.to<int16_t>();
    case at::kInt: return value.to<int32_t>();
    case at::kLong: return value.to<int64_t>();
    case at::kHalf: return static_cast<float>(value.to<c10::Half>());
    case at::kBFloat16: return static_cast<float>(value.to<c10::BFloat16>());
    case at::kUInt16: return value.to<uint16_t>();
    case at::kUInt32: return value.to<uint32_t>();
    case at::kUInt64: return value.to<uint64_t>();
    case at::kFloat: return value.to<float>();
    case at::kDouble: return value.to<double>();
    case at::kComplexFloat: return value.to<c10::complex<float>>();
    case at::kFloat8_e4m3fn: return static_cast<float>(value.to<c10::Float8_e4m3fn>());
    case at::kFloat8_e4m3fnuz: return static_cast<float>(value.to<c10::Float8_e4m3fnuz>());
    case at::kFloat8_e5m2: return static_cast<float>(value.to<c10::Float8_e5m2>());
    case at::kFloat8_e5m2fnuz: return static_cast<float>(value.to<c10::Float8_e5m2fnuz>());
    default: return value;
  }
}

}  // namespace torch_webgpu
