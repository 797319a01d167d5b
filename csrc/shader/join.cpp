#include "shader/join.h"

#include <algorithm>

#include "shader/memory.h"

namespace torch_webgpu {
namespace {

using At = JoinParams;

std::string number(uint32_t value) { return std::to_string(value) + "u"; }

std::string element_of(uint32_t unit_bytes) {
  return unit_bytes == 16 ? "vec4<u32>" : unit_bytes == 8 ? "vec2<u32>" : "u32";
}

class Printer {
 public:
  Printer(const JoinSpec& spec, const Target& target)
      : spec_(spec), source_(target), workgroup_(target.workgroup), out_(memory(0)) {}

  std::string print() {
    const uint32_t bindings = 1 + *std::max_element(spec_.bindings, spec_.bindings + spec_.count);
    for (uint32_t i = 0; i < bindings; ++i) source_.bind(i, element_of(spec_.unit_bytes));
    source_.print("fn unit_at(row: u32, column: u32) -> " + element_of(spec_.unit_bytes) + " {\n" +
                  choose(0, spec_.count) + "}\n");
    source_.print("@compute @workgroup_size(" + number(workgroup_) +
                  ")\nfn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {\n"
                  "  take_params();\n  let begin = group.x * " +
                  param(At::kChunk) + ";\n  let end = min(begin + " + param(At::kChunk) + ", " + param(At::kSteps) +
                  ");\n  for (var step = begin + lane; step < end; step += " + number(workgroup_) + ") {\n");
    source_.print(spec_.unit_bytes < 4 ? word() : unit());
    source_.print("  }\n}\n");
    return source_.text();
  }

 private:
  Memory memory(uint32_t binding) const {
    return {"m" + std::to_string(binding), spec_.unit_bytes, element_of(spec_.unit_bytes)};
  }

  // The inputs from `first` on, `count` of them, by halves.
  std::string choose(uint32_t first, uint32_t count) const {
    if (count == 1) return "  return " + load(first) + ";\n";
    const uint32_t half = count / 2;
    return "  if (column < " + param(At::end(first + half - 1)) + ") {\n" + choose(first, half) + "  }\n" +
           choose(first + half, count - half);
  }

  std::string load(uint32_t input) const {
    const std::string begin = input == 0 ? "" : " - " + param(At::end(input - 1)),
                      at = "(" + param(At::offset(input)) + " + row * " + param(At::stride(input)) + " + column" +
                           begin + ")";
    return memory(spec_.bindings[input]).load_alone(at);
  }

  std::string unit() const {
    return "    let row = step / " + param(At::kWidth) + ";\n    let column = step - row * " + param(At::kWidth) +
           ";\n    " +
           out_.assign(param(At::kOffset) + " + row * " + param(At::kStride) + " + " + param(At::kBegin) + " + column",
                       "unit_at(row, column)") +
           "\n";
  }

  // An invocation owns a word of the output, and keeps what others bring.
  std::string word() const {
    const std::string per = out_.elements_per_word(), offset = param(At::kOffset);
    return "    let word = " + offset + " / " + per + " + step;\n    var bits = " + out_.word("word") +
           ";\n    for (var j = 0u; j < " + per + "; j++) {\n      let element = step * " + per + " + j - " + offset +
           " % " + per + ";\n      let row = element / " + param(At::kStride) +
           ";\n      let column = element - row * " + param(At::kStride) + " - " + param(At::kBegin) +
           ";\n      if (element < " + param(At::kElements) + " && column < " + param(At::kWidth) +
           ") {\n        bits = " + out_.inserted("bits", "unit_at(row, column)", "j") + ";\n      }\n    }\n    " +
           out_.assign("word", "bits") + "\n";
  }

  const JoinSpec& spec_;
  ShaderSource source_;
  const uint32_t workgroup_;
  const Memory out_;
};

}  // namespace

std::string print_join(const JoinSpec& spec, const Target& target) { return Printer(spec, target).print(); }

std::string label_join(const JoinSpec& spec) {
  return "cat(" + std::to_string(spec.count) + " of " + std::to_string(spec.unit_bytes) + " bytes)";
}

}  // namespace torch_webgpu
