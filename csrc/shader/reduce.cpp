#include "shader/reduce.h"

#include <cstring>

#include "shader/memory.h"

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
        target_(target),
        workgroup_(reduce_workgroup(spec, target)),
        input_(static_cast<DType>(spec.input)),
        output_(static_cast<DType>(spec.output)),
        second_(static_cast<DType>(spec.second)),
        compute_(static_cast<Compute>(spec.compute)) {}

  std::string print() {
    source_.bind(0, bound(output_));
    source_.bind(1, input_element());
    if (stores_second()) source_.bind(2, bound(second_));
    source_.use(compute_);
    source_.use(compute_type(input_));
    source_.use(compute_type(output_));
    if (stores_second()) source_.use(compute_type(second_));
    if (row_.library) source_.use(row_.library);
    if (target_.software) {
      source_.use(spec_.width() == Quads::none ? "reduce_fold" : "reduce_fold_quads");
    } else {
      print_items();
    }
    source_.use(kernel());
    source_.print("const WORKGROUP = " + number(workgroup_) + ";\nconst COLUMNS = " + number(kColumns) + ";\n");
    if (spec_.team > 0) source_.print("const TEAM = " + number(spec_.team) + ";\n");
    for (const auto& [name, word] : {std::pair{"outputs", ReduceParams::kOutputs},
                                     {"reduced", ReduceParams::kReduced},
                                     {"splits", ReduceParams::kSplits},
                                     {"span", ReduceParams::kSpan},
                                     {"chunk", ReduceParams::kChunk},
                                     {"reduced_count", ReduceParams::kCount}}) {
      // Where nothing is split, no compiler should divide by it.
      const bool whole = word == ReduceParams::kSplits && !spec_.writes_parts;
      source_.print(std::string("fn ") + name + "() -> u32 { return " + (whole ? "1u" : param(word)) + "; }\n");
    }
    source_.print("fn scalar() -> f32 { return " + param_value(Compute::f32, ReduceParams::kScalar) + "; }\n");
    print_accumulator();
    print_offset("kept_offset", ReduceParams::kInputOffset, params_.kept, params_.kept_size(0),
                 params_.kept_input_stride(0));
    print_offset("out_offset", ReduceParams::kOutputOffset, params_.kept, params_.kept_size(0),
                 params_.kept_output_stride(0));
    if (spec_.width() == Quads::none) {
      print_element();
    } else {
      print_quad();
    }
    if (by_subgroup()) print_exchange();
    spec_.writes_parts ? print_store_part() : print_store();
    return source_.text();
  }

 private:
  bool stores_second() const { return row_.second && !spec_.writes_parts; }
  bool by_subgroup() const { return spec_.grouped && target_.subgroup == workgroup_; }
  std::string kernel() const {
    if (spec_.lines) return "reduce_lines";
    if (spec_.width() == Quads::across) return spec_.columns ? "reduce_columns" : "reduce_across";
    if (spec_.team > 0) return "reduce_team";
    return !spec_.grouped ? "reduce_lane" : by_subgroup() ? "reduce_subgroup" : "reduce_group";
  }
  std::string bound(DType dtype) const { return !spec_.writes_parts && size_bytes(dtype) < 4 ? "atomic<u32>" : "u32"; }
  std::string input_element() const {
    return spec_.width() == Quads::none ? "u32" : array_of_quads(size_bytes(input_));
  }
  Memory memory_of_input() const { return {"m1", size_bytes(input_), input_element()}; }

  Compute field_type(char field) const { return field == 'T' ? compute_ : field == 'f' ? Compute::f32 : Compute::i32; }
  std::string field_wgsl(char field) const { return field == 'u' ? "u32" : wgsl_type(field_type(field)); }

  // GPUs hide the time of a load behind other loads: what a step takes, an element or a quad, is folded eight at a
  // time.
  void print_items() {
    const bool quads = spec_.width() != Quads::none;
    if (quads) source_.use("reduce_quads");
    source_.use("reduce_fold_deep");
    const std::string type = quads ? "Quad" : "Acc", of = quads ? "quads(p, q)" : "(p, q)";
    source_.print("alias Item = " + type + ";\nfn no_item() -> Item { return " + (quads ? "no_quad()" : "identity()") +
                  "; }\nfn combine_items(p: Item, q: Item) -> Item { return combine" + (quads ? "_" : "") + of +
                  "; }\nfn item(base: u32, i: u32) -> Item { return " + (quads ? "quad" : "element") +
                  "(base, i); }\n");
    const std::string range = "(base: u32, first: u32, last: u32, step: u32)",
                      call = "fold_items(base, first, last, step)";
    if (spec_.lines) {
      source_.print(std::string("fn store_item(task: u32, p: Item) { ") + (quads ? "store_quad" : "store") +
                    "(task, p); }\n");
    } else if (spec_.width() == Quads::across) {
      source_.print("fn fold_quads" + range + " -> Quad { return " + call + "; }\n");
    } else if (quads) {
      source_.print("fn fold" + range + " -> Acc {\n  let total = " + call +
                    ";\n  return combine(combine(total.a, total.b), combine(total.c, total.d));\n}\n");
    } else {
      source_.print("fn fold" + range + " -> Acc { return " + call + "; }\n");
    }
  }

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
      const std::string place = "d" + std::to_string(dim);
      text +=
          take_dimension("let", place, param(size + dim)) + "  at += " + place + " * " + param(stride + dim) + ";\n";
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
    source_.print("  return " + mapped(memory_of_input().load("at"), "i") + ";\n}\n" + map_text());
  }

  std::string mapped(const std::string& raw, const std::string& index) const {
    return "mapped(" + from_raw(input_, compute_, raw) + ", " + index + ")";
  }
  std::string map_text() const {
    return std::string("fn mapped(a: ") + wgsl_type(compute_) + ", index: u32) -> Acc { return Acc(" +
           specialise(row_.map, compute_) + "); }\n";
  }

  // Four elements at once. Along memory, `i` counts quads of an output; across outputs, elements.
  void print_quad() {
    const bool along = spec_.width() == Quads::along;
    source_.print("struct Quad { a: Acc, b: Acc, c: Acc, d: Acc, }\nfn quad(base: u32, i: u32) -> Quad {\n");
    if (spec_.edges) {
      source_.print("  let at = base / 4u + i;\n  let first = at * 4u - base;\n");
    } else {
      // One dimension along memory is walked by one.
      source_.print(along && params_.reduced == 1
                        ? "  let at = base + i;\n"
                        : "  var at = base;\n" +
                              walk(params_.reduced, params_.reduced_size(0), params_.reduced_stride(0)));
      source_.print(along ? "  let first = i * 4u;\n" : "  let first = i;\n");
    }
    const Memory memory = memory_of_input();
    source_.print(memory.load_quad("q", "at"));
    for (uint32_t j = 0; j < 4; ++j) {
      const std::string value = mapped(memory.raw_of_quad("q", j), along ? "first + " + number(j) : "first"),
                        name = std::string(1, "abcd"[j]);
      if (spec_.edges) {
        source_.print("  var " + name + " = identity();\n  if (first + " + number(j) + " < reduced_count()) { " + name +
                      " = " + value + "; }\n");
      } else {
        source_.print("  let " + name + " = " + value + ";\n");
      }
    }
    source_.print("  return Quad(a, b, c, d);\n}\n" + map_text());
  }

  // The accumulator of the lane whose number differs in the bits of `mask`.
  void print_exchange() {
    source_.use_subgroups();
    source_.print("fn exchange(p: Acc, mask: u32) -> Acc {\n  return Acc(");
    for (size_t i = 0; row_.fields[i]; ++i) {
      const std::string field = std::string("p.") + "xyz"[i];
      const bool boolean = row_.fields[i] == 'T' && compute_ == Compute::boolean;
      source_.print((i ? ", " : "") + (boolean ? "subgroupShuffleXor(u32(" + field + "), mask) != 0u"
                                               : "subgroupShuffleXor(" + field + ", mask)"));
    }
    source_.print(");\n}\n");
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

  // An accumulator into the scratch buffer.
  void print_store_part() {
    const uint32_t words = accumulator_words(row_, compute_);
    uint32_t word = 0;
    source_.print("fn store(task: u32, p: Acc) {\n");
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
    // The parts of an output lie side by side.
    if (spec_.width() == Quads::across) {
      if (spec_.lines) {
        print_store_quad("store", "task * 4u", "1u");
      } else {
        print_store_quad("store", "(task / splits()) * 4u * splits() + task % splits()", "splits()");
      }
    }
  }

  void print_store() {
    source_.print("fn store(task: u32, p: Acc) { put(out_offset(task), p); }\n");
    if (spec_.width() == Quads::across) {
      print_store_quad("put", "out_offset(task)", param(params_.kept_output_stride(0)) + " / 4u");
    }
    source_.print("fn put(at: u32, p: Acc) {\n  let count = reduced_count();\n");
    const std::string first = result("m0", "at", output_, row_.finish, row_.result);
    if (!row_.second) {
      source_.print(first + "}\n");
      return;
    }
    source_.print("  {\n" + first + "  }\n  let beside = at - " + param(ReduceParams::kOutputOffset) + " + " +
                  param(ReduceParams::kSecondOffset) + ";\n" +
                  result("m2", "beside", second_, row_.second, row_.second_result) + "}\n");
  }

  void print_store_quad(const std::string& store, const std::string& at, const std::string& by) {
    source_.print("fn store_quad(task: u32, p: Quad) {\n  let at = " + at + ";\n  let by = " + by + ";\n  " + store +
                  "(at, p.a);\n  " + store + "(at + by, p.b);\n  " + store + "(at + 2u * by, p.c);\n  " + store +
                  "(at + 3u * by, p.d);\n}\n");
  }

  std::string result(const std::string& memory, const std::string& at, DType dtype, const char* finish,
                     ReduceRow::Result kind) const {
    const std::string text = specialise(finish, compute_),
                      raw = kind == ReduceRow::index ? "vec2<u32>(" + text + ", 0u)" : to_raw(dtype, compute_, text);
    return Memory{memory, size_bytes(dtype), bound(dtype)}.store(at, raw);
  }

  const ReduceSpec& spec_;
  const ReduceRow& row_;
  const ReduceParams params_;
  ShaderSource source_;
  const Target& target_;
  const uint32_t workgroup_;
  const DType input_, output_, second_;
  const Compute compute_;
};

}  // namespace

uint32_t accumulator_words(const ReduceRow& row, Compute type) {
  uint32_t words = 0;
  for (const char* field = row.fields; *field; ++field) words += *field == 'T' && type == Compute::i64 ? 2 : 1;
  return words;
}

uint32_t reduce_workgroup(const ReduceSpec& spec, const Target& target) {
  return (spec.grouped || spec.lines) && !target.software ? 256 : target.workgroup;
}

std::string print_reduce(const ReduceSpec& spec, const Target& target) { return Printer(spec, target).print(); }

std::string label_reduce(const ReduceSpec& spec) {
  return std::string(spec.row->name) + "(" + name(static_cast<DType>(spec.input)) + ") -> " +
         name(static_cast<DType>(spec.output));
}

}  // namespace torch_webgpu
