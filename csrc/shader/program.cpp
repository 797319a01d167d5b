#include "shader/program.h"

#include <algorithm>
#include <sstream>
#include <utility>
#include <vector>

#include "shader/memory.h"

namespace torch_webgpu {
namespace {

struct Operand {
  char kind;
  std::string name;
  DType dtype;
  uint32_t binding;
  bool written;
  bool is_absent() const { return binding == kAbsent; }
  bool is_shared() const { return written && size_bytes(dtype) < 4; }  // stores share words
  bool is_atomic() const { return kind == 'a' || is_shared(); }
  bool is_in_quads() const { return kind == 'q' || kind == 'w'; }
  const char* array() const { return is_in_quads() ? "vec4<u32>" : is_atomic() ? "atomic<u32>" : "u32"; }
};

std::vector<Operand> operands_of(const ProgramSpec& spec) {
  std::vector<Operand> operands;
  std::istringstream words(spec.program->operands);
  for (std::string word; words >> word;) {
    const auto& place = spec.operands[operands.size()];
    const bool written = word.back() == '!';
    operands.push_back({word[0], word.substr(2, word.size() - 2 - (written ? 1 : 0)), static_cast<DType>(place.dtype),
                        place.binding, written});
  }
  return operands;
}

class Printer {
 public:
  Printer(const ProgramSpec& spec, const Target& target, Pages pages)
      : spec_(spec), source_(target, pages), target_(target), compute_(static_cast<Compute>(spec.compute)) {}

  std::string print() {
    const auto operands = operands_of(spec_);
    std::vector<std::string> elements;
    for (const Operand& operand : operands) {
      if (operand.is_absent()) continue;
      if (elements.size() <= operand.binding) elements.resize(operand.binding + 1, "u32");
      if (operand.is_atomic() || operand.is_in_quads()) elements[operand.binding] = operand.array();
    }
    for (uint32_t i = 0; i < elements.size(); ++i) source_.bind(i, elements[i]);
    source_.use(compute_);
    source_.use(spec_.program->grouped ? "program_group" : "program");
    source_.use(spec_.program->file);
    std::istringstream libraries(spec_.program->library ? spec_.program->library : "");
    for (std::string library; libraries >> library;) source_.use(library);
    source_.print(std::string("alias T = ") + wgsl_type(compute_) +
                  ";\nconst WORKGROUP = " + number(spec_.program->lanes ? spec_.program->lanes : target_.workgroup) +
                  ";\nconst VARIANT = " + number(spec_.variant) + ";\n");
    print_param("tasks", ProgramParams::kTasks);
    print_param("chunk", ProgramParams::kChunk);
    uint32_t word = ProgramParams::kNamed;
    std::istringstream names(spec_.program->params);
    for (std::string name; names >> name;) print_param(name, word++);
    for (uint32_t i = 0; i < operands.size(); ++i) print_operand(operands[i], ProgramParams::kOffsets + i);
    source_.print(specialise(spec_.program->text, compute_) + "\n");
    return source_.text();
  }

 private:
  static std::string number(uint32_t value) { return std::to_string(value) + "u"; }

  Memory memory(const Operand& operand) const {
    return {"m" + std::to_string(operand.binding), operand.is_in_quads() ? 16 : size_bytes(operand.dtype),
            operand.array(), source_.is_paged(operand.binding)};
  }

  void print_param(const std::string& name, uint32_t word) {
    source_.print("fn " + name + "() -> u32 { return " + param(word) + "; }\n");
  }

  static std::string type_of(const Operand& operand) {
    switch (operand.kind) {
      case 'T': return "T";
      case 'q': return "vec4<T>";
      case 'w': return "vec4<u32>";
      default: return "u32";
    }
  }

  void print_operand(const Operand& operand, uint32_t offset) {
    const std::string type = type_of(operand);
    const std::string head = "(place: u32) -> " + type + " {\n", at = "  let at = place + " + param(offset) + ";\n";
    const std::string stored = "fn store_" + operand.name + "(place: u32, value: " + type + ") {\n";
    if (operand.is_absent()) {
      source_.print("fn load_" + operand.name + head + "  return " + type + "();\n}\n" + stored + "}\n");
      return;
    }
    const Memory memory = this->memory(operand);
    if (operand.kind == 'a') {
      source_.print("fn load_" + operand.name + head + at + "  return " + memory.word("at") + ";\n}\n");
      for (const auto& [verb, function] : {std::pair{"add_", "Add"}, {"or_", "Or"}}) {
        source_.print("fn " + (verb + operand.name) + "(place: u32, value: u32) -> u32 {\n" + at + "  return " +
                      memory.atomic(function, "at", "value") + ";\n}\n");
      }
      source_.print("fn exchange_" + operand.name + "(place: u32, old: u32, value: u32) -> bool {\n" + at +
                    "  return " + memory.swap("at", "old", "value") + ".exchanged;\n}\n");
      return;
    }
    source_.use(compute_type(operand.dtype));
    std::string loaded = memory.load("at"), value = "value";
    if (operand.kind == 'T') {
      loaded = from_raw(operand.dtype, compute_, loaded);
      value = to_raw(operand.dtype, compute_, "value");
    } else if (operand.kind == 'q') {
      loaded = "bitcast<vec4<T>>(" + loaded + ")";
      value = "bitcast<vec4<u32>>(value)";
    } else if (operand.kind == 'i') {
      loaded = memory.word("at * 2u");
      value = "vec2<u32>(value, 0u)";
    }
    source_.print("fn load_" + operand.name + head + at + "  return " + loaded + ";\n}\n");
    if (operand.written) source_.print(stored + at + memory.store("at", value) + "}\n");
  }

  const ProgramSpec& spec_;
  ShaderSource source_;
  const Target& target_;
  const Compute compute_;
};

}  // namespace

std::string print_program(const ProgramSpec& spec, const Target& target, Pages pages) {
  return Printer(spec, target, pages).print();
}

std::string label_program(const ProgramSpec& spec) {
  std::string label = std::string(spec.program->name) + " (" + spec.program->file;
  for (const Operand& operand : operands_of(spec)) {
    label += " " + operand.name + (operand.is_absent() ? "" : std::string(":") + name(operand.dtype));
  }
  if (spec.variant != 0) label += " variant " + std::to_string(spec.variant);
  return label + ")";
}

}  // namespace torch_webgpu
