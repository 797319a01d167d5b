#include "shader/norm.h"

#include <algorithm>

#include "shader/memory.h"

namespace torch_webgpu {
namespace {

const char* const kNames[] = {"out", "x", "grad", "weight", "bias", "mean", "scale", "total", "moment"};

std::string number(uint32_t value) { return std::to_string(value) + "u"; }

class Printer {
 public:
  Printer(const NormSpec& spec, const Target& target, Pages pages)
      : spec_(spec), source_(target, pages), target_(target) {}

  std::string print() {
    const bool by_subgroup = spec_.grouped && spec_.team == 0 && target_.subgroup == target_.workgroup;
    for (uint32_t binding = 0; binding < binding_count(); ++binding) source_.bind(binding, element(binding));
    source_.use(Compute::f32);
    source_.use(std::string(spec_.kind == NormKind::forward ? "norm_forward" : "norm_backward") +
                (spec_.keep.blocks ? "_kept" : ""));
    if (spec_.keep.blocks) {
      print_kept();
    } else if (spec_.grouped && spec_.team == 0) {
      source_.use("norm_rows");
    }
    source_.use(!spec_.grouped   ? "norm_lane"
                : spec_.team > 0 ? "norm_team"
                : by_subgroup    ? "norm_subgroup"
                                 : "norm_group");
    if (spec_.team > 0) print_constant("TEAM", number(spec_.team));
    if (by_subgroup) source_.use_subgroups();
    // Rows that are walked side by side share what is loaded of the weights.
    print_constant("WORKGROUP", number(target_.workgroup));
    print_constant("ROWS", by_subgroup ? "4u" : "1u");
    print_constant("CENTERED", spec_.root_mean_square ? "false" : "true");
    for (const NormOperand operand : {NormOperand::out, NormOperand::total}) {
      print_constant(operand == NormOperand::out ? "WRITES" : "SUMS", has(operand) ? "true" : "false");
    }
    for (const auto& [name, word] : {std::pair{"rows", NormParams::kRows},
                                     {"length", NormParams::kLength},
                                     {"chunk", NormParams::kChunk},
                                     {"share", NormParams::kShare},
                                     {"period", NormParams::kPeriod}}) {
      source_.print(std::string("fn ") + name + "() -> u32 { return " + param(word) + "; }\n");
    }
    source_.print("fn epsilon() -> f32 { return " + param_value(Compute::f32, NormParams::kEpsilon) + "; }\n");
    // Along a row, places count in what is loaded at once, or in elements.
    source_.print(spec_.quads ? "fn steps() -> u32 { return length() / 4u; }\n"
                                "fn inside(i: u32) -> vec4<bool> { return vec4<bool>(true); }\n"
                              : "fn steps() -> u32 { return (length() + 3u) / 4u; }\n"
                                "fn inside(i: u32) -> vec4<bool> {\n"
                                "  return vec4<u32>(i * 4u) + vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(length());\n}\n");
    for (uint32_t i = 0; i < kNormOperands; ++i) {
      const auto operand = static_cast<NormOperand>(i);
      if (runs_along(operand)) {
        source_.print("fn start_of_" + name(operand) + "(row: u32) -> u32 { return " + offset(operand) + " + row * " +
                      (spec_.quads ? "steps()" : "length()") + "; }\n");
        print_load(operand);
        if (operand == NormOperand::out) print_store(operand);
      } else {
        print_number(operand);
      }
    }
    return source_.text();
  }

 private:
  const NormSpec::Place& place(NormOperand operand) const { return spec_.operands[static_cast<uint32_t>(operand)]; }
  bool has(NormOperand operand) const { return place(operand).binding != kNormAbsent; }
  DType dtype(NormOperand operand) const { return static_cast<DType>(place(operand).dtype); }
  uint32_t bytes(NormOperand operand) const { return size_bytes(dtype(operand)); }
  Memory memory(NormOperand operand) const {
    const uint32_t binding = place(operand).binding;
    return {"m" + std::to_string(binding), bytes(operand), element(binding), source_.is_paged(binding)};
  }
  std::string loaded(NormOperand operand) const { return from_raw(dtype(operand), memory(operand).load("at")); }
  static std::string name(NormOperand operand) { return kNames[static_cast<uint32_t>(operand)]; }
  static std::string offset(NormOperand operand) {
    return param(NormParams::kOffsets + static_cast<uint32_t>(operand));
  }
  // Rows and weights in registers.
  void print_kept() {
    use_kept(source_, spec_.keep);
    source_.use("norm_kept");
    const auto value = [&](NormOperand operand, const std::string& absent) {
      return KeptValue{name(operand), has(operand) ? "" : "Pair(vec4<f32>(" + absent + "), vec4<f32>(" + absent + "))"};
    };
    std::vector<KeptValue> values{value(NormOperand::x, "")};
    if (spec_.kind == NormKind::backward) values.push_back(value(NormOperand::grad, ""));
    print_keep(source_, spec_.keep, "row", values);
    const std::vector<KeptValue> weights{value(NormOperand::weight, "1.0"), value(NormOperand::bias, "")};
    print_keep(source_, spec_.keep, "weights", weights);
    values.insert(values.end(), weights.begin(), weights.end());
    print_fold_kept(source_, spec_.keep, values);
    print_result_kept(source_, spec_.keep, values);
    for (const NormOperand operand : {NormOperand::x, NormOperand::grad, NormOperand::weight, NormOperand::bias}) {
      const std::string load = "load_" + name(operand) + "(start, i";
      source_.print("fn pair_of_" + name(operand) + "(start: u32, i: u32) -> Pair {\n  return Pair(" + load + "), " +
                    load + " + WORKGROUP));\n}\n");
    }
  }
  void print_constant(const std::string& name, const std::string& value) {
    source_.print("const " + name + " = " + value + ";\n");
  }

  uint32_t binding_count() const {
    uint32_t count = 0;
    for (const auto& operand : spec_.operands) {
      if (operand.binding != kNormAbsent) count = std::max<uint32_t>(count, operand.binding + 1);
    }
    return count;
  }

  bool is_written(NormOperand operand) const {
    if (operand == NormOperand::mean || operand == NormOperand::scale) return spec_.kind == NormKind::forward;
    return operand == NormOperand::out || operand == NormOperand::total || operand == NormOperand::moment;
  }

  // Operands that share a buffer have one kind and one size, and are only read.
  std::string element(uint32_t binding) const {
    for (uint32_t i = 0; i < kNormOperands; ++i) {
      const auto operand = static_cast<NormOperand>(i);
      if (spec_.operands[i].binding != binding) continue;
      if (runs_along(operand) && spec_.quads) return array_of_quads(bytes(operand));
      return is_written(operand) && bytes(operand) == 2 ? "atomic<u32>" : "u32";
    }
    return "u32";
  }

  // Four elements from a row's start on; those beyond its end are zero.
  void print_load(NormOperand operand) {
    if (operand == NormOperand::out) return;
    source_.print("fn load_" + name(operand) + "(start: u32, i: u32) -> vec4<f32> {\n");
    if (!has(operand)) {
      source_.print(operand == NormOperand::weight ? "  return vec4<f32>(1.0);\n}\n" : "  return vec4<f32>();\n}\n");
      return;
    }
    if (spec_.quads) {
      source_.print(memory(operand).load_quad("q", "start + i") + "  return " + floats_of_quad(dtype(operand), "q") +
                    ";\n}\n");
      return;
    }
    source_.print("  let left = length() - i * 4u;\n  var at = start + i * 4u;\n  var v = vec4<f32>();\n");
    for (uint32_t j = 0; j < 4; ++j) {
      source_.print("  if (left > " + number(j) + ") { v." + "xyzw"[j] + " = " + loaded(operand) +
                    "; }\n  at += 1u;\n");
    }
    source_.print("  return v;\n}\n");
  }

  void print_store(NormOperand operand) {
    source_.print("fn store_out(start: u32, i: u32, v: vec4<f32>) {\n");
    if (!has(operand)) {
      source_.print("}\n");
      return;
    }
    if (spec_.quads) {
      source_.print("  " + memory(operand).assign("start + i", quad_of_floats(dtype(operand), "v")) + "\n}\n");
      return;
    }
    source_.print("  let left = length() - i * 4u;\n  var at = start + i * 4u;\n");
    for (uint32_t j = 0; j < 4; ++j) {
      source_.print("  if (left > " + number(j) + ") {\n" +
                    memory(operand).store("at", to_raw(dtype(operand), std::string("v.") + "xyzw"[j]), "    ") +
                    "  }\n  at += 1u;\n");
    }
    source_.print("}\n");
  }

  // One number per row.
  void print_number(NormOperand operand) {
    const std::string at = "  let at = " + offset(operand) + " + i;\n";
    if (is_written(operand)) {
      source_.print("fn store_" + name(operand) + "(i: u32, v: f32) {\n" +
                    (has(operand) ? at + memory(operand).store("at", to_raw(dtype(operand), "v")) : std::string()) +
                    "}\n");
    } else {
      source_.print("fn load_" + name(operand) + "(i: u32) -> f32 {\n" +
                    (has(operand) ? at + "  return " + loaded(operand) + ";\n}\n" : std::string("  return 0.0;\n}\n")));
    }
  }

  const NormSpec& spec_;
  ShaderSource source_;
  const Target& target_;
};

}  // namespace

bool runs_along(NormOperand operand) { return operand <= NormOperand::bias; }

std::string print_norm(const NormSpec& spec, const Target& target, Pages pages) {
  return Printer(spec, target, pages).print();
}

std::string label_norm(const NormSpec& spec) {
  const auto input = static_cast<DType>(spec.operands[static_cast<uint32_t>(NormOperand::x)].dtype);
  return std::string(spec.root_mean_square ? "rms_norm" : "norm") +
         (spec.kind == NormKind::forward ? "(" : "_backward(") + name(input) + ")";
}

}  // namespace torch_webgpu
