#include "shader/pointwise.h"

#include "shader/memory.h"
#include "shader/wgsl_text.h"

namespace torch_webgpu {
namespace {

std::string number(uint32_t value) { return std::to_string(value) + "u"; }

class Printer {
 public:
  Printer(const PointwiseSpec& spec, const Target& target)
      : spec_(spec),
        params_(spec),
        source_(target),
        target_(target),
        workgroup_(target.workgroup),
        compute_(static_cast<Compute>(spec.compute)),
        store_(static_cast<Store>(spec.store)) {}

  std::string print() {
    for (uint32_t binding = 0; binding < spec_.binding_count; ++binding) source_.bind(binding, element_of(binding));
    source_.use(compute_);
    if (spec_.row->library) {
      source_.use(Compute::f32);  // its functions build on those
      source_.use(spec_.row->library);
    }
    if (is_random()) source_.use("philox");
    for (uint32_t i = 0; i < spec_.operand_count; ++i) source_.use(spec_.dtype(i));
    print_words();
    print_apply();
    if (store_ != Store::quads) print_value();
    if (in_pairs()) print_quad_function();
    print_main();
    return source_.text();
  }

 private:
  uint32_t bytes(uint32_t operand) const { return size_bytes(spec_.dtype(operand)); }
  Memory memory(uint32_t operand) const {
    const uint32_t binding = spec_.binding(operand);
    return {"m" + std::to_string(binding), bytes(operand), element_of(binding)};
  }

  std::string element_of(uint32_t binding) const {
    if (store_ == Store::atomics && binding == spec_.binding(0)) return "atomic<u32>";
    if (store_ != Store::quads) return "u32";
    for (uint32_t i = 0; i < spec_.operand_count; ++i) {
      if (spec_.access(i) == Access::run && spec_.binding(i) == binding) return array_of_quads(bytes(i));
    }
    return "u32";
  }

  Compute operand_type(uint32_t operand) const {
    return operand == 1 && (spec_.row->flags & PointwiseRow::first_is_bool) ? Compute::boolean : compute_;
  }
  Compute result_type() const { return (spec_.row->flags & PointwiseRow::returns_bool) ? Compute::boolean : compute_; }

  bool has_index() const { return spec_.row->flags & PointwiseRow::has_index; }
  bool is_random() const { return spec_.row->flags & PointwiseRow::random; }
  bool own_block() const { return spec_.row->flags & PointwiseRow::own_block; }
  bool has_short_library() const { return spec_.row->library && !wgsl_file(spec_.row->library).has_loops; }
  // Two quads at a time: a software adapter works on one while it waits for the steps of the other's formula.
  bool in_pairs() const {
    return target_.software && store_ == Store::quads && has_short_library() && bytes(0) == 4 && !spec_.partial &&
           spec_.rank == 0;
  }

  void print_words() {
    if (spec_.row->words == 0) return;
    const std::string at = number(params_.word(0)) + " + index";
    source_.print("fn word(index: u32) -> u32 { return given[(" + at + ") / 4u][(" + at + ") % 4u]; }\n");
  }

  // Variables of a formula about the element: its index, and its random words.
  std::string place_parameters() const {
    return std::string(has_index() ? ", index: u32" : "") + (is_random() ? ", block: vec4<u32>, lane: u32" : "");
  }
  std::string place_arguments(const std::string& index, const std::string& block, const std::string& lane) const {
    return (has_index() ? ", " + index : "") + (is_random() ? ", " + block + ", " + lane : "");
  }
  static std::string without_comma(const std::string& list) { return list.starts_with(", ") ? list.substr(2) : list; }

  void print_apply() {
    std::string arguments;
    for (uint32_t i = 1; i < spec_.operand_count; ++i) {
      arguments += ", " + std::string(1, static_cast<char>('a' + i - 1)) + ": " + wgsl_type(operand_type(i));
    }
    source_.print(std::string("fn apply(") + without_comma(arguments + place_parameters()) + ") -> " +
                  wgsl_type(result_type()) + " {\n");
    for (uint32_t s = 0; s < params_.scalars; ++s) {
      source_.print("  let s" + std::to_string(s) + " = " + param_value(compute_, params_.scalar(s)) + ";\n");
    }
    source_.print("  return " + specialise(spec_.row->formula, compute_, spec_.row->library ? spec_.row->library : "") +
                  ";\n}\n");
  }

  std::string loaded(uint32_t operand, const std::string& raw) const {
    const DType dtype = spec_.dtype(operand);
    std::string value = from_raw(dtype, operand_type(operand), raw);
    const auto common = static_cast<DType>(spec_.common - 1);
    if (spec_.common == 0 || dtype == common || operand_type(operand) != compute_) return value;
    return in_common(value);
  }

  // A value of the compute type as the common dtype holds it.
  std::string in_common(const std::string& value) const {
    const auto common = static_cast<DType>(spec_.common - 1);
    return from_raw(common, to_raw(common, value));
  }

  std::string stored(const std::string& value) const {
    const DType dtype = spec_.dtype(0), common = static_cast<DType>(spec_.common - 1);
    const bool cut = spec_.common != 0 && dtype != common && result_type() == compute_;
    return to_raw(dtype, result_type(), cut ? in_common(value) : value);
  }

  static std::string index(uint32_t operand) { return "i" + std::to_string(operand); }

  // Sets i<operand> for each operand, from the running index `step`.
  std::string indices(const std::string& step, uint32_t first, uint32_t last) const {
    std::string text;
    const auto begins = [&](uint32_t i) { return spec_.access(i) != Access::scalar; };
    if (spec_.rank == 0) {
      for (uint32_t i = first; i < last; ++i) {
        if (!begins(i)) continue;
        const bool moves = spec_.access(i) != Access::splat;
        text += "  let i" + std::to_string(i) + " = " + param(params_.offset(i)) + (moves ? " + " + step : "") + ";\n";
      }
      return text;
    }
    for (uint32_t i = first; i < last; ++i) {
      if (begins(i)) text += "  var i" + std::to_string(i) + " = " + param(params_.offset(i)) + ";\n";
    }
    text += "  var rest = " + step + ";\n";
    for (uint32_t dim = 0; dim < spec_.rank; ++dim) {
      const bool outermost = dim + 1 == spec_.rank;
      const std::string size = param(params_.size(dim)), at = "d" + std::to_string(dim);
      text += outermost ? "  let " + at + " = rest;\n" : take_dimension("let", at, size);
      for (uint32_t i = first; i < last; ++i) {
        if (begins(i)) text += "  i" + std::to_string(i) + " += " + at + " * " + param(params_.stride(i, dim)) + ";\n";
      }
    }
    return text;
  }

  // One element of the result, for the stores that are not quads.
  void print_value() {
    source_.print(std::string("fn value(step: u32) -> ") + wgsl_type(result_type()) + " {\n");
    source_.print(indices("step", 1, spec_.operand_count));
    std::string arguments;
    for (uint32_t i = 1; i < spec_.operand_count; ++i) {
      arguments += ", " + (spec_.access(i) == Access::scalar ? param_value(operand_type(i), params_.value(i))
                                                             : loaded(i, memory(i).load(index(i))));
    }
    arguments += own_block() ? place_arguments("step", "random_block(step)", "0u")
                             : place_arguments("step", "random_block(step / 4u)", "step % 4u");
    source_.print("  return apply(" + without_comma(arguments) + ");\n}\n");
  }

  void print_main() {
    source_.print("@compute @workgroup_size(" + std::to_string(workgroup_) +
                  ")\nfn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {\n"
                  "  take_params();\n  let begin = group.x * " +
                  param(PointwiseParams::kChunk) +
                  ";\n"
                  "  let end = min(begin + " +
                  param(PointwiseParams::kChunk) + ", " + param(PointwiseParams::kSteps) +
                  ");\n"
                  "  for (var step = begin + lane; step < end; step += " +
                  number(in_pairs() ? 2 * workgroup_ : workgroup_) + ") {\n");
    switch (store_) {
      case Store::quads: in_pairs() ? print_pair() : print_quad(); break;
      case Store::words: print_word(); break;
      case Store::elements:
      case Store::atomics: source_.print(indices("step", 0, 1) + memory(0).store("i0", stored("value(step)"))); break;
    }
    source_.print("  }\n}\n");
  }

  // The word's owner keeps the bits that are not the tensor's.
  void print_word() {
    const Memory out = memory(0);
    const std::string per = out.elements_per_word();
    source_.print("  let offset = " + param(params_.offset(0)) +
                  ";\n"
                  "  let at = offset / " +
                  per +
                  " + step;\n"
                  "  var word = " +
                  out.word("at") +
                  ";\n"
                  "  for (var j = 0u; j < " +
                  per +
                  "; j++) {\n"
                  "    let element = step * " +
                  per + " + j - offset % " + per +
                  ";\n"
                  "    if (element < " +
                  param(PointwiseParams::kElements) +
                  ") {\n"
                  "      word = " +
                  out.inserted("word", stored("value(element)"), "j") + ";\n    }\n  }\n  " + out.assign("at", "word") +
                  "\n");
  }

  std::string quad(uint32_t operand) const { return "q" + std::to_string(operand); }

  void print_quad_function() {
    source_.print("fn quad(step: u32) -> vec4<u32> {\n" + indices("step", 1, spec_.operand_count));
    print_results();
    source_.print("  return vec4<u32>(r0, r1, r2, r3);\n}\n");
  }

  void print_pair() {
    const std::string offset = param(params_.offset(0));
    source_.print("  let other = step + " + number(workgroup_) +
                  ";\n  let first = quad(step);\n  let second = quad(other);\n  m0[" + offset +
                  " + step] = first;\n  if (other < end) { m0[" + offset + " + other] = second; }\n");
  }

  // Loads a quad and sets r0 to r3 to its results.
  void print_results() {
    for (uint32_t i = 1; i < spec_.operand_count; ++i) {
      if (spec_.access(i) == Access::run) source_.print(memory(i).load_quad(quad(i), index(i)));
      // A splat shares its buffer with runs at times, and is then read out of one of their quads.
      if (spec_.access(i) == Access::splat) {
        source_.print("  let v" + std::to_string(i) + " = " + loaded(i, memory(i).load(index(i))) + ";\n");
      }
    }
    if (is_random() && !own_block()) source_.print("  let block = random_block(step);\n");
    for (uint32_t j = 0; j < 4; ++j) {
      std::string arguments;
      for (uint32_t i = 1; i < spec_.operand_count; ++i) {
        arguments += ", ";
        switch (spec_.access(i)) {
          case Access::scalar: arguments += param_value(operand_type(i), params_.value(i)); break;
          case Access::run: arguments += loaded(i, memory(i).raw_of_quad(quad(i), j)); break;
          default: arguments += "v" + std::to_string(i); break;
        }
      }
      const std::string index = "step * 4u + " + number(j);
      arguments += own_block() ? place_arguments(index, "random_block(" + index + ")", "0u")
                               : place_arguments(index, "block", number(j));
      const char* declare = spec_.partial ? "  var r" : "  let r";
      source_.print(declare + std::to_string(j) + " = " + stored("apply(" + without_comma(arguments) + ")") + ";\n");
    }
  }

  void print_quad() {
    source_.print(indices("step", 0, spec_.operand_count));
    print_results();
    if (spec_.partial) {
      source_.print("  let left = " + param(PointwiseParams::kElements) + " - step * 4u;\n  if (left < 4u) {\n" +
                    memory(0).load_quad("old0", index(0)));
      for (uint32_t j = 1; j < 4; ++j) {
        const std::string r = "r" + std::to_string(j);
        source_.print("  " + r + " = select(" + memory(0).raw_of_quad("old0", j) + ", " + r + ", left > " + number(j) +
                      ");\n");
      }
      source_.print("  }\n");
    }
    source_.print(memory(0).store_quad("i0", {"r0", "r1", "r2", "r3"}));
  }

  const PointwiseSpec& spec_;
  const PointwiseParams params_;
  ShaderSource source_;
  const Target& target_;
  const uint32_t workgroup_;
  const Compute compute_;
  const Store store_;
};

}  // namespace

std::string print_pointwise(const PointwiseSpec& spec, const Target& target) { return Printer(spec, target).print(); }

std::string label_pointwise(const PointwiseSpec& spec) {
  std::string label = std::string(spec.row->name) + "(";
  for (uint32_t i = 1; i < spec.operand_count; ++i) label += (i > 1 ? ", " : "") + std::string(name(spec.dtype(i)));
  return label + ") -> " + name(spec.dtype(0));
}

}  // namespace torch_webgpu
