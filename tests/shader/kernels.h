// What every family prints, over the dtypes and forms that its launcher may ask for. The rows are short ones of the
// tests' own: a family prints the same text around any row.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "shader/source.h"

namespace torch_webgpu::test {

using Emit = std::function<void(const std::string& label, const std::string& text)>;

void print_pointwise_kernels(const Target& target, const Emit& emit);
void print_reduce_kernels(const Target& target, const Emit& emit);
void print_join_kernels(const Target& target, const Emit& emit);
void print_indexed_kernels(const Target& target, const Emit& emit);
void print_program_kernels(const Target& target, const Emit& emit);
void print_multi_kernels(const Target& target, const Emit& emit);
void print_matmul_kernels(const Target& target, const Emit& emit);
void print_convolution_kernels(const Target& target, const Emit& emit);
void print_attention_kernels(const Target& target, const Emit& emit);
void print_norm_kernels(const Target& target, const Emit& emit);
void print_softmax_kernels(const Target& target, const Emit& emit);
void print_selection_kernels(const Target& target, const Emit& emit);

constexpr DType kDTypes[] = {DType::f32, DType::f16, DType::bf16, DType::i64,    DType::i32,
                             DType::i16, DType::i8,  DType::u8,   DType::boolean};
// Those that pointwise kernels move, cast and compare only.
constexpr DType kStoredOnly[] = {DType::f64,      DType::u16,        DType::u32,    DType::u64,
                                 DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2, DType::f8e5m2fnuz,
                                 DType::c32,      DType::c64,        DType::c128};
constexpr DType kFloats[] = {DType::f32, DType::f16, DType::bf16};
constexpr bool kEither[] = {false, true};
constexpr Pages kInPages{0x111};  // the first three arrays take two bindings each

inline uint8_t number_of(DType dtype) { return static_cast<uint8_t>(dtype); }

}  // namespace torch_webgpu::test
