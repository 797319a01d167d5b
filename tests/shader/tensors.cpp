// The families that move and gather: joins, computed indices, programs, many tensors at once.
#include "kernels.h"
#include "shader/indexed.h"
#include "shader/join.h"
#include "shader/multi_tensor.h"
#include "shader/program.h"

namespace torch_webgpu::test {
namespace {

constexpr IndexedRow kMoves{"index", "if (!valid) { return V(); } return load1(at);",
                            IndexedRow::raw | IndexedRow::merges | IndexedRow::runs | IndexedRow::wraps};
constexpr IndexedRow kWrites{"index_put_", "if (valid) { store(at, load1(i1)); }",
                             IndexedRow::raw | IndexedRow::acts | IndexedRow::merges, 2, 0};
constexpr IndexedRow kWritesNumber{"index_fill_", "if (valid) { store(at, constant(0u)); }",
                                   IndexedRow::raw | IndexedRow::acts | IndexedRow::merges, 1, 0};
constexpr IndexedRow kSums{"sum",
                           "var sum = T(); for (var j = 0u; j < x(0u); j++) { sum = add(sum, load1(i1 + j)); }"
                           "return rounded(sum);",
                           0};

class Gathers {
 public:
  Gathers(const Target& target, const Emit& emit) : target_(target), emit_(emit) {}

  // `values` operands of one element each in a buffer of its own, then `indices`.
  void forms(const IndexedRow& row, Element element, Compute compute, uint32_t values, uint32_t indices) {
    IndexedSpec spec{};
    spec.row = &row;
    spec.compute = static_cast<uint8_t>(compute);
    for (uint32_t i = 0; i < values + indices; ++i) {
      const Element its = i < values ? element : element_of(i % 2 ? DType::i64 : DType::i32);
      spec.elements |= static_cast<uint32_t>(its) << (4 * i);
      spec.bindings |= i << (4 * i);
    }
    spec.operand_count = spec.binding_count = values + indices;
    spec.index_count = indices;
    const bool small = size_bytes(element) < 4, acts = row.flags & IndexedRow::acts;
    for (const IndexedStore store :
         {IndexedStore::elements, IndexedStore::words, IndexedStore::atomics, IndexedStore::exchange}) {
      if (small != (store != IndexedStore::elements) || (small && acts != (store == IndexedStore::exchange))) continue;
      spec.store = static_cast<uint8_t>(store);
      const uint8_t run = store == IndexedStore::words ? 4 / size_bytes(element) : 4;
      for (const uint8_t rank : {0, 2}) {
        spec.rank = rank;
        for (const uint8_t count : {uint8_t{1}, run}) {
          if (rank == 0 && count > 1) continue;
          spec.run = count;
          for (const bool still : kEither) {
            spec.still = still && count > 1 && indices > 0;
            emit_(label_indexed(spec), print_indexed(spec, target_));
          }
        }
      }
      emit_(label_indexed(spec), print_indexed(spec, target_, kInPages));
    }
  }

 private:
  const Target& target_;
  const Emit& emit_;
};

#define KEY "fn key(a: T) -> vec2<u32> { return vec2<u32>(0u, u32(ne(a, zero))); }"
constexpr Program kTake = make_program("sort", "sort_take", "T:input u:order u:chosen T:values! i:indices!",
                                       "length inner width first taken");
constexpr Program kKeys = make_program("sort", "sort_keys", "T:input u:keys!", "length inner", KEY, "sort_key");
constexpr Program kGroup = make_grouped(make_program("sort", "sort_group", "T:input u:chosen T:values! i:indices!",
                                                     "length inner width size first taken", KEY, "sort_key"));
constexpr Program kCount = make_program("histogram", "histogram", "u:index T:weights a:counts!", "bins");
constexpr Program kScan =
    make_program("cumsum", "scan_quads", "q:input q:output! w:index! T:part! u:tag!", "length blocks span carried",
                 "struct Acc { x: T, y: u32 }\n"
                 "fn identity() -> Acc { return Acc(zero, 0u); }\n"
                 "fn map(a: T, i: u32) -> Acc { return Acc(a, 0u); }\n"
                 "fn combine(p: Acc, q: Acc) -> Acc { return Acc(add(p.x, q.x), 0u); }\n"
                 "fn finish(p: Acc) -> T { return p.x; }\n");
constexpr Program kCholesky =
    make_grouped(make_program("cholesky", "cholesky", "T:a! u:info!", "size batch row column first"));
constexpr MultiProgram kUnscale{"unscale", "multi_unscale", "gradient found:1 inverse:1", ""};
constexpr PointwiseRow kAdd{"add", "add(a, mul(b, s0))", PointwiseRow::none, 1};
constexpr PointwiseRow kLerp{"addcmul", "add(a, mul(b, c))"};

class Programs {
 public:
  Programs(const Target& target, const Emit& emit) : target_(target), emit_(emit) {}

  // `dtype` for operands of kind T and q, what the others' kind says; an operand of `absent` is left out.
  void print(const Program& program, DType dtype, uint32_t absent = 0, uint32_t variant = 0) {
    ProgramSpec spec{};
    spec.program = &program;
    spec.compute = static_cast<uint8_t>(compute_type(dtype));
    spec.variant = variant;
    uint8_t binding = 0;
    uint32_t i = 0;
    for (const char* at = program.operands; *at; ++at) {
      if (at[1] != ':') continue;
      const DType its = at[0] == 'T' || at[0] == 'q' ? dtype : at[0] == 'i' || at[0] == 'w' ? DType::i64 : DType::i32;
      spec.operands[i].dtype = number_of(its) & 15;
      spec.operands[i].binding = (absent >> i & 1 ? kAbsent : binding++) & 15;
      ++i;
    }
    emit_(label_program(spec), print_program(spec, target_));
    emit_(label_program(spec), print_program(spec, target_, kInPages));
  }

 private:
  const Target& target_;
  const Emit& emit_;
};

}  // namespace

void print_join_kernels(const Target& target, const Emit& emit) {
  for (const uint8_t bytes : {1, 2, 4, 8, 16}) {
    for (const uint8_t count : {1, 2, 7}) {
      JoinSpec spec{};
      spec.count = count;
      spec.unit_bytes = bytes;
      for (uint8_t i = 0; i < count; ++i) spec.bindings[i] = i + 1;
      emit(label_join(spec), print_join(spec, target));
    }
  }
}

void print_indexed_kernels(const Target& target, const Emit& emit) {
  Gathers gathers(target, emit);
  for (const uint32_t bytes : {1, 2, 4, 8, 16}) {
    const Element element = raw_element(bytes);
    for (const uint32_t indices : {0, 1, 2}) {
      if (indices > 0) gathers.forms(kMoves, element, Compute::i32, 2, indices);
      if (indices > 0) gathers.forms(kWrites, element, Compute::i32, 2, indices);
      if (indices > 0 && bytes < 16) gathers.forms(kWritesNumber, element, Compute::i32, 1, indices);
    }
  }
  for (const DType dtype : kDTypes) {
    if (dtype != DType::boolean) gathers.forms(kSums, element_of(dtype), compute_type(dtype), 2, 0);
  }
}

void print_program_kernels(const Target& target, const Emit& emit) {
  Programs programs(target, emit);
  for (const DType dtype : kDTypes) {
    programs.print(kTake, dtype);
    programs.print(kTake, dtype, 1u << 2);
    programs.print(kKeys, dtype);
    programs.print(kGroup, dtype);
  }
  for (const DType dtype : {DType::f32, DType::i32}) {
    programs.print(kScan, dtype);
    programs.print(kScan, dtype, 1u << 2);
  }
  programs.print(kCount, DType::f32);
  programs.print(kCholesky, DType::f32);
}

void print_multi_kernels(const Target& target, const Emit& emit) {
  const auto print = [&](const MultiSpec& spec) { emit(label_multi(spec), print_multi(spec, target)); };
  for (const bool aligned : kEither) {
    for (const uint32_t count : {1, 3}) {
      for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::i32}) {
        MultiSpec spec;
        spec.aligned = aligned;
        for (uint32_t column = 0; column < 3; ++column) {
          spec.operands[column].dtype = dtype;
          spec.operands[column].column = column;
          spec.operands[column].written = column == 0;
          spec.counts[column] = count;
        }
        const bool small = size_bytes(dtype) < 4;
        if (small && !aligned) continue;
        spec.row = &kLerp;
        spec.operands[3] = {dtype, 2, false};
        print(spec);
        spec.operands[3] = {};
        spec.row = &kAdd;
        print(spec);
        if (small) continue;
        for (const uint32_t variant : {MultiFormula::kOwnScalar, MultiFormula::kOwnNumber | 2u}) {
          spec.variant = variant;
          print(spec);
        }
      }
      MultiSpec spec;
      spec.program = &kUnscale;
      spec.aligned = aligned;
      spec.counts[0] = count;
      spec.counts[1] = spec.counts[2] = 1;
      for (uint32_t i = 0; i < 3; ++i) spec.operands[i] = {DType::f32, i, i > 0, i < 2};
      print(spec);
      // All in one buffer.
      for (uint32_t i = 0; i < 3; ++i) spec.operands[i].column = spec.counts[i] = 0;
      spec.counts[0] = count;
      print(spec);
      spec = {};
      spec.row = &kLerp;
      spec.aligned = aligned;
      spec.counts[0] = count;
      for (const DType dtype : {DType::f32, DType::bf16}) {
        if (dtype == DType::bf16 && !aligned) continue;
        spec.operands[0] = {DType::f32, 0, false, true};
        spec.operands[1] = {DType::f32, 0};
        spec.operands[2] = {dtype, 0};
        spec.operands[3] = {DType::f32, 0, true};
        print(spec);
      }
    }
  }
}

}  // namespace torch_webgpu::test
