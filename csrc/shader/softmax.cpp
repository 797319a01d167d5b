#include "shader/softmax.h"

#include "shader/memory.h"

namespace torch_webgpu {
namespace {

const char* const kNames[] = {"out", "a", "b"};
const char* const kKinds[] = {"softmax", "log_softmax", "softmax_backward", "log_softmax_backward"};

std::string number(uint32_t value) { return std::to_string(value) + "u"; }

class Printer {
 public:
  Printer(const SoftmaxSpec& spec, const Target& target, Pages pages)
      : spec_(spec),
        params_(spec),
        source_(target, pages),
        target_(target),
        kind_(static_cast<SoftmaxKind>(spec.kind)) {}

  std::string print() {
    const bool backward = kind_ == SoftmaxKind::softmax_backward || kind_ == SoftmaxKind::log_softmax_backward;
    const bool log = kind_ == SoftmaxKind::log_softmax || kind_ == SoftmaxKind::log_softmax_backward;
    uint32_t bindings = 1;
    for (uint32_t i = 1; i < spec_.operands; ++i) bindings = std::max<uint32_t>(bindings, spec_.binding[i] + 1);
    for (uint32_t i = 0; i < bindings; ++i) source_.bind(i, element(i));
    source_.use(Compute::f32);
    source_.use("softmax");
    source_.print(std::string("fn beyond() -> f32 { return ") + (backward ? "0.0" : "-inf_f32()") + "; }\n");
    source_.use(backward ? "softmax_backward" : "softmax_forward");
    source_.use("exp_below");
    const bool by_subgroup = spec_.grouped && spec_.team == 0 && target_.subgroup == target_.workgroup;
    if (by_subgroup) source_.use_subgroups();
    source_.use(!spec_.grouped   ? "softmax_lane"
                : spec_.team > 0 ? "softmax_team"
                : by_subgroup    ? "softmax_subgroup"
                                 : "softmax_group");
    if (spec_.team > 0) source_.print("const TEAM = " + number(spec_.team) + ";\n");
    if (spec_.keep.blocks) {
      print_kept();
    } else if (by_subgroup) {
      source_.use("softmax_rows");
    }
    source_.print("const WORKGROUP = " + number(target_.workgroup) + ";\nconst LOG = " + (log ? "true" : "false") +
                  ";\n");
    for (const auto& [name, word] : {std::pair{"rows", SoftmaxParams::kRows},
                                     {"length", SoftmaxParams::kLength},
                                     {"chunk", SoftmaxParams::kChunk}}) {
      source_.print(std::string("fn ") + name + "() -> u32 { return " + param(word) + "; }\n");
    }
    source_.print(std::string("fn steps() -> u32 { return ") + (spec_.quads ? "length()" : "(length() + 3u) / 4u") +
                  "; }\n");
    print_row();
    for (uint32_t i = 1; i < kSoftmaxOperands; ++i) print_load(i);
    print_store();
    return source_.text();
  }

 private:
  DType dtype(uint32_t operand) const { return static_cast<DType>(spec_.dtype[operand]); }
  uint32_t bytes(uint32_t operand) const { return size_bytes(dtype(operand)); }

  // With quads all operands are of one dtype.
  std::string element(uint32_t binding) const {
    if (spec_.quads) return array_of_quads(bytes(0));
    return binding == 0 && bytes(0) == 2 ? "atomic<u32>" : "u32";
  }
  Memory memory(uint32_t operand) const {
    const uint32_t binding = operand == 0 ? 0 : spec_.binding[operand];
    return {"m" + std::to_string(binding), bytes(operand), element(binding), source_.is_paged(binding)};
  }
  std::string loaded(uint32_t operand) const { return from_raw(dtype(operand), memory(operand).load("at")); }

  void print_row() {
    source_.print("struct Row { out: u32, a: u32, b: u32, }\nfn row_at(i: u32) -> Row {\n");
    for (uint32_t i = 0; i < kSoftmaxOperands; ++i) {
      source_.print(std::string("  var ") + kNames[i] + " = " + param(params_.offset(i)) + ";\n");
    }
    if (spec_.rank) source_.print("  var rest = i;\n");
    for (uint32_t dim = 0; dim < spec_.rank; ++dim) {
      const bool outermost = dim + 1 == spec_.rank;
      const std::string size = param(params_.size(dim)), at = "d" + std::to_string(dim);
      source_.print(outermost ? "  let " + at + " = rest;\n" : take_dimension("let", at, size));
      for (uint32_t i = 0; i < spec_.operands; ++i) {
        source_.print(std::string("  ") + kNames[i] + " += " + at + " * " + param(params_.stride(i, dim)) + ";\n");
      }
    }
    source_.print("  return Row(out, a, b);\n}\n");
  }

  // Rows in registers: what was computed of them for the first walk need not be for the second.
  void print_kept() {
    use_kept(source_, spec_.keep);
    source_.use("softmax_kept");
    std::vector<KeptValue> values;
    if (kind_ == SoftmaxKind::softmax) {
      source_.use("softmax_kept_terms");
      values = {{"terms", "", "Terms"}};
    } else if (kind_ == SoftmaxKind::log_softmax) {
      source_.use("softmax_kept_log");
      values = {{"x", ""}};
    } else {
      source_.use("softmax_kept_backward");
      values = {{"grad", ""}, {"y", ""}};
    }
    print_keep(source_, spec_.keep, "row", values);
    print_result_kept(source_, spec_.keep, values);
  }

  // Four elements of a row; those beyond its end are beyond().
  void print_load(uint32_t operand) {
    const std::string name = kNames[operand];
    source_.print("fn load_" + name + "(base: u32, i: u32) -> vec4<f32> {\n");
    if (operand >= spec_.operands) {
      source_.print("  return vec4<f32>();\n}\n");
      return;
    }
    if (spec_.quads) {
      source_.print(memory(operand).load_quad("q", "base + i") + "  return " + floats_of_quad(dtype(operand), "q") +
                    ";\n}\n");
      return;
    }
    source_.print("  let left = length() - i * 4u;\n  let by = " + param(params_.row_stride(operand)) +
                  ";\n  var at = base + i * 4u * by;\n  var v = vec4<f32>(beyond());\n  v.x = " + loaded(operand) +
                  ";\n");
    for (uint32_t j = 1; j < 4; ++j) {
      source_.print("  at += by;\n  if (left > " + number(j) + ") { v." + "xyzw"[j] + " = " + loaded(operand) +
                    "; }\n");
    }
    source_.print("  return v;\n}\n");
  }

  void print_store() {
    source_.print("fn store_out(base: u32, i: u32, v: vec4<f32>) {\n");
    if (spec_.quads) {
      source_.print("  " + memory(0).assign("base + i", quad_of_floats(dtype(0), "v")) + "\n}\n");
      return;
    }
    source_.print("  let left = length() - i * 4u;\n  let by = " + param(params_.row_stride(0)) +
                  ";\n  var at = base + i * 4u * by;\n");
    for (uint32_t j = 0; j < 4; ++j) {
      source_.print("  if (left > " + number(j) + ") {\n" +
                    memory(0).store("at", to_raw(dtype(0), std::string("v.") + "xyzw"[j]), "    ") +
                    "  }\n  at += by;\n");
    }
    source_.print("}\n");
  }

  const SoftmaxSpec& spec_;
  const SoftmaxParams params_;
  ShaderSource source_;
  const Target& target_;
  const SoftmaxKind kind_;
};

}  // namespace

std::string print_softmax(const SoftmaxSpec& spec, const Target& target, Pages pages) {
  return Printer(spec, target, pages).print();
}

std::string label_softmax(const SoftmaxSpec& spec) {
  return std::string(kKinds[spec.kind]) + "(" + name(static_cast<DType>(spec.dtype[1])) + ")";
}

}  // namespace torch_webgpu
