#include "shader/pointwise.h"

#include <initializer_list>

#include "kernels.h"

namespace torch_webgpu::test {
namespace {

constexpr PointwiseRow kCopy{"copy", "a"};
constexpr PointwiseRow kAdd{"add", "add(a, b)"};
constexpr PointwiseRow kEqual{"eq", "eq(a, b)", PointwiseRow::returns_bool};
constexpr PointwiseRow kWhere{"where", "select(c, b, a)", PointwiseRow::first_is_bool};
constexpr PointwiseRow kScale{"scale", "mul(a, s0)", PointwiseRow::none, 1};
constexpr PointwiseRow kSine{"sin", "sin(a)", PointwiseRow::none, 0, "transcendental"};
constexpr PointwiseRow kUniform{"uniform", "random_uniform(block[lane], s0, s1)", PointwiseRow::random, 2, "random", 6};
constexpr PointwiseRow kInteger{"random", "random_large(block)", PointwiseRow::random | PointwiseRow::own_block,
                                0,        "random_int",          9};
constexpr PointwiseRow kPermuted{"randperm", "permuted(index)", PointwiseRow::has_index, 0, "permutation", 10};

struct Operand {
  DType dtype;
  Access access;
  uint32_t binding;
};

PointwiseSpec make_spec(const PointwiseRow& row, Store store, Compute compute,
                        std::initializer_list<Operand> operands) {
  PointwiseSpec spec{};
  spec.row = &row;
  spec.store = static_cast<uint8_t>(store);
  spec.compute = static_cast<uint8_t>(compute);
  for (const auto& [dtype, access, binding] : operands) {
    const uint32_t i = spec.operand_count++;
    spec.operands[i].dtype = number_of(dtype) & 31;
    spec.operands[i].access = static_cast<uint8_t>(access);
    spec.bindings |= binding << (4 * i);
    if (binding >= spec.binding_count) spec.binding_count = binding + 1;
  }
  return spec;
}

class Kernels {
 public:
  Kernels(const Target& target, const Emit& emit) : target_(target), emit_(emit) {}

  // All ways to store an output of `to`, of operands that are read one by one.
  void by_elements(const PointwiseRow& row, Compute compute, DType to, std::initializer_list<DType> inputs,
                   bool in_place = false, std::initializer_list<uint8_t> ranks = {0, 3}) {
    for (const Store store : {Store::elements, Store::words, Store::atomics}) {
      if ((size_bytes(to) >= 4) != (store == Store::elements)) continue;
      PointwiseSpec spec = make_spec(row, store, compute, {{to, Access::strided, 0}});
      uint32_t binding = in_place ? 0 : 1;
      for (const DType input : inputs) {
        const uint32_t i = spec.operand_count++;
        spec.operands[i].dtype = number_of(input) & 31;
        spec.operands[i].access = static_cast<uint8_t>(Access::strided);
        spec.bindings |= binding << (4 * i);
        spec.binding_count = ++binding;
      }
      for (const uint8_t rank : ranks) {
        spec.rank = rank;
        print(spec);
      }
    }
  }

  void print(const PointwiseSpec& spec) { emit_(label_pointwise(spec), print_pointwise(spec, target_)); }
  void print_both(PointwiseSpec spec) {
    for (const bool partial : kEither) {
      spec.partial = partial;
      print(spec);
    }
  }

 private:
  const Target& target_;
  const Emit& emit_;
};

}  // namespace

namespace {

constexpr PointwiseRow kLess{"lt", "lt(a, b)", PointwiseRow::returns_bool};
constexpr PointwiseRow kNegative{"neg", "neg(a)"};
constexpr PointwiseRow kFill{"fill", "s0", PointwiseRow::none, 1};

void print_stored(Kernels& kernels) {
  for (const DType dtype : kStoredOnly) {
    const Compute type = compute_type(dtype);
    const bool wide = size_bytes(dtype) == 16;
    const auto cast = [&](DType from, DType to) {
      kernels.by_elements(kCopy, compute_type(from), to, {from}, false, {0});
      if (size_bytes(from) == 16 || size_bytes(to) == 16) return;
      kernels.print(make_spec(kCopy, Store::quads, compute_type(from), {{to, Access::run, 0}, {from, Access::run, 1}}));
    };
    for (const DType other : kDTypes) cast(dtype, other), cast(other, dtype);
    for (const DType other : kStoredOnly) cast(dtype, other);
    kernels.by_elements(kCopy, Compute::boolean, DType::boolean, {dtype});
    kernels.by_elements(kEqual, type, DType::boolean, {dtype, dtype});
    kernels.by_elements(kWhere, type, dtype, {DType::boolean, dtype, dtype});
    kernels.by_elements(kFill, type, dtype, {});
    const bool complex = type == Compute::c64 || type == Compute::c128;
    if (!complex) kernels.by_elements(kLess, type, DType::boolean, {dtype, dtype});
    if (complex || type == Compute::f64) kernels.by_elements(kNegative, type, dtype, {dtype}, true);
    if (!wide) {
      kernels.print_both(
          make_spec(kEqual, Store::quads, type,
                    {{DType::boolean, Access::run, 0}, {dtype, Access::run, 1}, {dtype, Access::scalar, 1}}));
    }
  }
}

}  // namespace

void print_pointwise_kernels(const Target& target, const Emit& emit) {
  Kernels kernels(target, emit);
  print_stored(kernels);
  for (const DType from : kDTypes) {
    const Compute type = compute_type(from);
    for (const DType to : kDTypes) {
      kernels.print(make_spec(kCopy, Store::quads, type, {{to, Access::run, 0}, {from, Access::run, 1}}));
    }
    // In place, and with an operand that is one element of a buffer that quads are loaded from.
    kernels.by_elements(kCopy, type, from, {from}, true);
    if (from != DType::boolean) kernels.by_elements(kAdd, type, from, {from, from}, true);
    kernels.by_elements(kEqual, type, DType::boolean, {from, from});
    kernels.print_both(make_spec(kEqual, Store::quads, type,
                                 {{DType::boolean, Access::run, 0}, {from, Access::run, 1}, {from, Access::splat, 1}}));
    kernels.print_both(
        make_spec(kEqual, Store::quads, type,
                  {{DType::boolean, Access::run, 0}, {from, Access::splat, 1}, {from, Access::scalar, 0}}));
    PointwiseSpec strided =
        make_spec(kEqual, Store::quads, type,
                  {{DType::boolean, Access::run, 0}, {from, Access::run, 1}, {from, Access::splat, 2}});
    strided.rank = 2;
    kernels.print(strided);
    kernels.print_both(make_spec(
        kWhere, Store::quads, type,
        {{from, Access::run, 0}, {DType::boolean, Access::run, 1}, {from, Access::run, 2}, {from, Access::splat, 3}}));
    if (from != DType::boolean) kernels.by_elements(kScale, type, from, {from});
  }
  for (const DType dtype : kFloats) {
    kernels.by_elements(kSine, Compute::f32, dtype, {dtype});
    kernels.print_both(
        make_spec(kSine, Store::quads, Compute::f32, {{dtype, Access::run, 0}, {dtype, Access::run, 0}}));
    kernels.by_elements(kUniform, Compute::f32, dtype, {});
    kernels.print_both(make_spec(kUniform, Store::quads, Compute::f32, {{dtype, Access::run, 0}}));
    // Cut to a smaller common dtype before a wider output.
    PointwiseSpec spec =
        make_spec(kAdd, Store::quads, Compute::f32,
                  {{DType::f32, Access::run, 0}, {dtype, Access::run, 1}, {DType::f32, Access::run, 2}});
    spec.common = 1 + number_of(DType::bf16);
    kernels.print(spec);
  }
  for (const PointwiseRow* row : {&kInteger, &kPermuted}) {
    kernels.by_elements(*row, Compute::i64, DType::i64, {});
    kernels.print_both(make_spec(*row, Store::quads, Compute::i64, {{DType::i64, Access::run, 0}}));
  }
}

}  // namespace torch_webgpu::test
