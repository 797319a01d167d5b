#include "shader/reduce.h"

#include "kernels.h"

namespace torch_webgpu::test {
namespace {

#define LARGER "if (p.y == 0xffffffffu || gt(q.x, p.x)) { return q; } return p;"
#define SPREAD "0.0, 0.0, 0.0", "a, own_spread(a), 1.0", "return joined_spread(p, q);"
constexpr ReduceRow kSum{"sum", "T", "zero", "a", "return Acc(add(p.x, q.x));", "p.x"};
constexpr ReduceRow kAny{"any", "T", "false", "a", "return Acc(p.x || q.x);", "p.x"};
constexpr ReduceRow kArgmax{"argmax", "Tu", "lowest(), 0xffffffffu", "a, index", LARGER, "p.y", ReduceRow::index};
constexpr ReduceRow kMax{
    "max", "Tu", "lowest(), 0xffffffffu", "a, index", LARGER, "p.x", ReduceRow::value, "p.y", ReduceRow::index};
constexpr ReduceRow kVarMean{"var_mean",       "fff", SPREAD,           "variance(p.y, count, scalar())",
                             ReduceRow::value, "p.x", ReduceRow::value, "statistics"};

class Kernels {
 public:
  Kernels(const Target& target, const Emit& emit) : target_(target), emit_(emit) {}

  // All forms of one row; of the others whole passes alone.
  void forms(const ReduceRow& row, Compute compute, DType input, DType output, DType second) {
    const ReduceSpec spec = spec_of(row, compute, input, output, second);
    passes(spec);
    parts(spec);
  }

  void passes(ReduceSpec spec) {
    for (const bool grouped : kEither) print(spec, Quads::none, grouped);
    print(spec, Quads::along, true);
    print(spec, Quads::across, false);
  }

  static ReduceSpec spec_of(const ReduceRow& row, Compute compute, DType input, DType output, DType second) {
    ReduceSpec spec{};
    spec.row = &row;
    spec.input = number_of(input);
    spec.output = number_of(output);
    spec.second = number_of(second);
    spec.compute = static_cast<uint8_t>(compute);
    spec.kept_rank = spec.reduced_rank = 1;
    return spec;
  }

 private:
  void parts(ReduceSpec spec) {
    for (const bool writes_parts : kEither) {
      spec.writes_parts = writes_parts;
      spec.kept_rank = spec.reduced_rank = 2;
      passes(spec);
      spec.kept_rank = 0;
      spec.reduced_rank = 1;
      spec.edges = 1;
      print(spec, Quads::along, true);
      spec.edges = 0;
    }
    if (!target_.software) {
      spec.lines = 1;
      for (const bool writes_parts : kEither) {
        spec.writes_parts = writes_parts;
        for (const Quads quads : {Quads::none, Quads::across}) print(spec, quads, false);
      }
      spec.lines = 0;
    }
    spec.writes_parts = 0;
    spec.kept_rank = 1;
    spec.columns = 1;
    print(spec, Quads::across, false);
    spec.columns = 0;
    spec.reads_parts = 1;
    print(spec, Quads::none, false);
    spec.lines = !target_.software;
    print(spec, Quads::none, false);
  }

  void print(ReduceSpec spec, Quads quads, bool grouped) {
    spec.quads = static_cast<uint8_t>(quads) & 3;
    spec.grouped = grouped;
    emit_(label_reduce(spec), print_reduce(spec, target_));
  }

  const Target& target_;
  const Emit& emit_;
};

}  // namespace

void print_reduce_kernels(const Target& target, const Emit& emit) {
  Kernels kernels(target, emit);
  for (const DType dtype : kDTypes) {
    const Compute type = compute_type(dtype);
    if (type == Compute::boolean) {
      kernels.forms(kAny, type, dtype, dtype, dtype);
      continue;
    }
    kernels.passes(Kernels::spec_of(kAny, Compute::boolean, dtype, DType::boolean, dtype));
    kernels.forms(kSum, type, dtype, dtype, dtype);
    kernels.passes(Kernels::spec_of(kArgmax, type, dtype, DType::i64, dtype));
    kernels.passes(Kernels::spec_of(kMax, type, dtype, dtype, DType::i64));
  }
  for (const DType dtype : kFloats) kernels.forms(kVarMean, Compute::f32, dtype, dtype, dtype);
}

}  // namespace torch_webgpu::test
