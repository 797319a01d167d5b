#include "shader/convolution.h"

namespace torch_webgpu {
namespace {

std::string number(uint32_t value) { return std::to_string(value) + "u"; }

class Printer {
 public:
  Printer(const ConvolutionSpec& spec, const Target& target)
      : spec_(spec), source_(target), target_(target), form_(static_cast<ConvolutionForm>(spec.form)) {}

  std::string print() {
    const bool packed = form_ == ConvolutionForm::output;
    source_.bind(binding(kOut), "f32");
    print_binding(kRow, packed ? "vec4<f32>" : "u32");
    print_binding(kX, "u32");
    if (spec_.has_bias) print_binding(kBias, "u32");
    source_.use("storage");
    source_.use("convolution");
    source_.use(packed ? "convolution_output" : "convolution_weight");
    source_.use(spec_.shared ? "convolution_subgroup" : "convolution_lane");
    if (spec_.shared) source_.use_subgroups();
    source_.print("const WORKGROUP = " + number(target_.workgroup) + ";\nconst ROWS = " + number(spec_.rows) + ";\n");
    print_params();
    print_load("load_x", kX);
    if (packed) {
      source_.print("fn load_weight(at: u32) -> vec4<f32> { return " + memory(kRow) + "[at]; }\n");
    } else {
      print_load("load_row", kRow);
    }
    if (spec_.has_bias) print_load("load_bias_at", kBias);
    source_.print(std::string("fn load_bias(channel: u32) -> f32 { return ") +
                  (spec_.has_bias ? "load_bias_at(bias_first() + channel)" : "0.0") + "; }\n");
    source_.print("fn store(at: u32, value: f32) { " + memory(kOut) + "[at] = value; }\n");
    return source_.text();
  }

 private:
  uint32_t binding(ConvolutionOperand operand) const { return spec_.binding[operand]; }
  std::string memory(ConvolutionOperand operand) const { return "m" + std::to_string(binding(operand)); }

  // Operands that are only read may share a buffer.
  void print_binding(ConvolutionOperand operand, const char* element) {
    if (bound_ >> binding(operand) & 1) return;
    bound_ |= 1u << binding(operand);
    source_.bind(binding(operand), element);
  }

  void print_params() {
    uint32_t word = 0;
    for (const char* name : kConvolutionWords) {
      source_.print(std::string("fn ") + name + "() -> u32 { return " + param(word++) + "; }\n");
    }
    for (const auto& [name, type] : kConvolutionAxes) {
      source_.print(std::string("fn ") + name + "() -> vec3<" + type + "> { return bitcast<vec3<" + type +
                    ">>(vec3<u32>(" + param(word) + ", " + param(word + 1) + ", " + param(word + 2) + ")); }\n");
      word += 3;
    }
  }

  void print_load(const char* name, ConvolutionOperand operand) {
    const auto dtype = static_cast<DType>(spec_.dtype[operand]);
    const std::string raw = size_bytes(dtype) == 4 ? memory(operand) + "[at]"
                                                   : "(" + memory(operand) + "[at >> 1u] >> ((at & 1u) * 16u))";
    source_.print(std::string("fn ") + name + "(at: u32) -> f32 { return " + from_raw(dtype, raw) + "; }\n");
  }

  const ConvolutionSpec& spec_;
  ShaderSource source_;
  const Target& target_;
  const ConvolutionForm form_;
  uint32_t bound_ = 0;
};

}  // namespace

std::string print_convolution(const ConvolutionSpec& spec, const Target& target) {
  return Printer(spec, target).print();
}

std::string label_convolution(const ConvolutionSpec& spec) {
  const bool output = static_cast<ConvolutionForm>(spec.form) == ConvolutionForm::output;
  return std::string(output ? "convolution(" : "convolution_weight(") + name(static_cast<DType>(spec.dtype[kX])) +
         ", " + std::to_string(spec.rows) + " rows)";
}

}  // namespace torch_webgpu
