#include "shader/reduce.h"

#include <cstring>

namespace torch_webgpu {
namespace {

std::string number(uint32_t value) { return std::to_string(value) + "u"; }

class Printer {
 public:
  Printer(const ReduceSpec& spec, const Target& target)
      : spec_(spec),
        row_(*spec.row),
        params_(spec),
        source_(target),
        workgroup_(reduce_workgroup(spec, target)),
        input_(static_cast<DType>(spec.input)),
        output_(static_cast<DType>(spec.output)),
        compute_(static_cast<Compute>(spec.compute)) {}

  std::string print() {
    const bool shared_words = !spec_.writes_parts && size_bytes(output_) < 4;
    source_.bind(0, shared_words ? "atomic<u32>" : "u32");
    source_.bind(1, "u32");
    source_.use(compute_);
    source_.use(compute_type(input_));
    source_.use(compute_type(output_));
    source_.use("reduce_fold");
    source_.use(spec_.grouped ? "reduce_group" : "reduce_lane");
    source_.print("const WORKGROUP = " + number(workgroup_) + ";\n");
    for (const auto& [name, word] : {std::pair{"outputs", ReduceParams::kOutputs},
                                     {"reduced", ReduceParams::kReduced},
                                     {"splits", ReduceParams::kSplits},
                                     {"span", ReduceParams::kSpan},
                                     {"chunk", ReduceParams::kChunk}}) {
      source_.print(std::string("fn ") + name + "() -> u32 { return " + param(word) + "; }\n");
    }
    print_accumulator();
    print_offset("kept_offset", ReduceParams::kInputOffset, params_.kept, params_.kept_size(0),
                 params_.kept_input_stride(0));
    print_offset("out_offset", ReduceParams::kOutputOffset, params_.kept, params_.kept_size(0),
                 params_.kept_output_stride(0));
    print_element();
    print_store();
    return source_.text();
  }

 private:
  Compute field_type(char field) const { return field == 'T' ? compute_ : field == 'f' ? Compute::f32 : Compute::i32; }
  std::string field_wgsl(char field) const { return field == 'u' ? "u32" : wgsl_type(field_type(field)); }

  void print_accumulator() {
    source_.print("struct Acc { ");
    for (size_t i = 0; row_.fields[i]; ++i)
      source_.print(std::string(1, "xyz"[i]) + ": " + field_wgsl(row_.fields[i]) + ", ");
    source_.print("}\n");
    source_.print("fn identity() -> Acc { return Acc(" + specialise(row_.identity, compute_) + "); }\n");
    source_.print("fn combine(p: Acc, q: Acc) -> Acc { " + specialise(row_.combine, compute_) + " }\n");
  }

  // The place of the i-th of a block of dimensions, the innermost first.
  void print_offset(const std::string& name, uint32_t base, uint32_t rank, uint32_t size, uint32_t stride) {
    source_.print("fn " + name + "(i: u32) -> u32 {\n  var at = " + param(base) + ";\n" + walk(rank, size, stride) +
                  "  return at;\n}\n");
  }
  static std::string walk(uint32_t rank, uint32_t size, uint32_t stride) {
    std::string text = rank ? "  var rest = i;\n" : "";
    for (uint32_t dim = 0; dim < rank; ++dim) {
      if (dim + 1 == rank) return text + "  at += rest * " + param(stride + dim) + ";\n";
      text += "  at += (rest % " + param(size + dim) + ") * " + param(stride + dim) +
              ";\n  rest /= " + param(size + dim) + ";\n";
    }
    return text;
  }

  void print_element() {
    source_.print("fn element(base: u32, i: u32) -> Acc {\n  var at = base;\n" +
                  walk(params_.reduced, params_.reduced_size(0), params_.reduced_stride(0)));
    if (spec_.reads_parts) {
      source_.print("  return Acc(" + parts() + ");\n}\n");
      return;
    }
    source_.print("  let a = " + convert(compute_type(input_), compute_, from_raw(input_, raw())) +
                  ";\n  let index = i;\n  return Acc(" + specialise(row_.map, compute_) + ");\n}\n");
  }

  std::string raw() const {
    switch (size_bytes(input_)) {
      case 8: return "vec2<u32>(m1[at * 2u], m1[at * 2u + 1u])";
      case 4: return "m1[at]";
      case 2: return "(m1[at >> 1u] >> ((at & 1u) * 16u))";
      default: return "(m1[at >> 2u] >> ((at & 3u) * 8u))";
    }
  }

  // An accumulator in the scratch buffer: its fields, word by word.
  std::string parts() const {
    const uint32_t words = accumulator_words(row_, compute_);
    std::string text;
    uint32_t word = 0;
    for (const char* field = row_.fields; *field; ++field) {
      const auto at = [&](uint32_t more) { return "m1[at * " + number(words) + " + " + number(word + more) + "]"; };
      text += text.empty() ? "" : ", ";
      if (*field == 'u') {
        text += at(0);
      } else {
        switch (field_type(*field)) {
          case Compute::f32: text += "bitcast<f32>(" + at(0) + ")"; break;
          case Compute::i32: text += "bitcast<i32>(" + at(0) + ")"; break;
          case Compute::i64: text += "vec2<u32>(" + at(0) + ", " + at(1) + ")"; break;
          default: text += at(0) + " != 0u"; break;
        }
      }
      word += field_type(*field) == Compute::i64 ? 2 : 1;
    }
    return text;
  }

  void print_store() {
    source_.print("fn store(task: u32, p: Acc) {\n");
    if (spec_.writes_parts) {
      const uint32_t words = accumulator_words(row_, compute_);
      uint32_t word = 0;
      for (size_t i = 0; row_.fields[i]; ++i) {
        const std::string field = std::string("p.") + "xyz"[i];
        const auto put = [&](const std::string& value) {
          source_.print("  m0[task * " + number(words) + " + " + number(word++) + "] = " + value + ";\n");
        };
        if (row_.fields[i] == 'u') {
          put(field);
        } else if (field_type(row_.fields[i]) == Compute::i64) {
          put(field + ".x");
          put(field + ".y");
        } else {
          put(field_type(row_.fields[i]) == Compute::boolean ? "u32(" + field + ")" : "bitcast<u32>(" + field + ")");
        }
      }
      source_.print("}\n");
      return;
    }
    source_.print("  let count = reduced_count();\n  let value = " + specialise(row_.finish, compute_) +
                  ";\n  let at = out_offset(task);\n");
    const bool is_index = row_.result == ReduceRow::index;
    const std::string raw =
        is_index ? "vec2<u32>(value, 0u)" : to_raw(output_, convert(compute_, compute_type(output_), "value"));
    switch (size_bytes(output_)) {
      case 8: source_.print("  let raw = " + raw + ";\n  m0[at * 2u] = raw.x;\n  m0[at * 2u + 1u] = raw.y;\n"); break;
      case 4: source_.print("  m0[at] = " + raw + ";\n"); break;
      default: {
        const std::string per = number(4 / size_bytes(output_)), bits = number(8 * size_bytes(output_));
        source_.print("  let shift = (at % " + per + ") * " + bits + ";\n  atomicAnd(&m0[at / " + per + "], ~(" +
                      (size_bytes(output_) == 2 ? "0xffffu" : "0xffu") + " << shift));\n  atomicOr(&m0[at / " + per +
                      "], (" + raw + ") << shift);\n");
      }
    }
    source_.print("}\nfn reduced_count() -> u32 { return " + param(ReduceParams::kCount) + "; }\n");
  }

  const ReduceSpec& spec_;
  const ReduceRow& row_;
  const ReduceParams params_;
  ShaderSource source_;
  const uint32_t workgroup_;
  const DType input_, output_;
  const Compute compute_;
};

}  // namespace

uint32_t accumulator_words(const ReduceRow& row, Compute type) {
  uint32_t words = 0;
  for (const char* field = row.fields; *field; ++field) words += *field == 'T' && type == Compute::i64 ? 2 : 1;
  return words;
}

uint32_t reduce_workgroup(const ReduceSpec& spec, const Target& target) {
  return spec.grouped && !target.software ? 256 : target.workgroup;
}

std::string print_reduce(const ReduceSpec& spec, const Target& target) { return Printer(spec, target).print(); }

std::string label_reduce(const ReduceSpec& spec) {
  return std::string(spec.row->name) + "(" + name(static_cast<DType>(spec.input)) + ") -> " +
         name(static_cast<DType>(spec.output));
}

}  // namespace torch_webgpu
