#include "shader/convolution.h"

#include "shader/memory.h"

namespace torch_webgpu {
namespace {

std::string number(uint32_t value) { return std::to_string(value) + "u"; }

class Printer {
 public:
  Printer(const ConvolutionSpec& spec, const Target& target, Pages pages)
      : spec_(spec),
        source_(target, pages),
        target_(target),
        form_(static_cast<ConvolutionForm>(spec.form)),
        compute_(compute_type(dtype(kOut))) {}

  std::string print() {
    const std::string type = wgsl_type(compute_);
    if (!spec_.epilogue) print_binding(kOut, spec_.quads ? "vec4<f32>" : type);
    print_binding(kX, spec_.quads ? "vec4<f32>" : "u32");
    print_binding(kRow, spec_.packed ? "vec4<f32>" : "u32");
    if (spec_.has_bias) print_binding(kBias, "u32");
    source_.use(compute_);
    source_.print("alias T = " + type + ";\nconst WORKGROUP = " + number(target_.workgroup) +
                  ";\nconst ROWS = " + number(spec_.rows) + ";\nconst PACKED = " + (spec_.packed ? "true" : "false") +
                  ";\nconst HAS_GAP = " + (spec_.has_gap ? "true" : "false") + ";\n");
    if (spec_.width) {
      source_.print("const WIDTH = " + number(spec_.width) + ";\nconst STEP = " + number(spec_.step) +
                    ";\nconst BEFORE = " + number(spec_.before) + ";\n");
    }
    print_params();
    if (spec_.quads) {
      const std::string quad = quads(kX).element("at / 4u");
      source_.print("fn load_quad(at: u32) -> vec4<f32> { return " + quad + "; }\n" +
                    "fn load_x(at: u32) -> f32 { return " + quad + "[at % 4u]; }\n");
    } else {
      print_load("load_x", kX);
    }
    print_store();
    if (spec_.packed) {
      source_.print("fn load_weight(at: u32) -> vec4<f32> { return " + quads(kRow).element("at") + "; }\n");
    } else {
      print_load("load_row", kRow);
    }
    if (spec_.has_bias) print_load("load_bias_at", kBias);
    source_.print(std::string("fn load_bias(channel: u32) -> T { return ") +
                  (spec_.has_bias ? "load_bias_at(bias_first() + channel)" : "T()") + "; }\n");
    use_files();
    return source_.text();
  }

 private:
  DType dtype(ConvolutionOperand operand) const { return static_cast<DType>(spec_.dtype[operand]); }
  uint32_t binding(ConvolutionOperand operand) const { return spec_.binding[operand]; }
  Memory memory(ConvolutionOperand operand, uint32_t bytes, const std::string& array) const {
    return {"m" + std::to_string(binding(operand)), bytes, array, source_.is_paged(binding(operand))};
  }
  Memory quads(ConvolutionOperand operand) const { return memory(operand, 16, "vec4<f32>"); }

  void print_store() {
    if (const EpilogueText* text = spec_.epilogue) {
      for (const auto& file : text->files) source_.use(file);
      source_.print(spec_.quads
                        ? text->fours + "\nfn store_quad(at: u32, value: vec4<f32>) { epilogue_four(at, value); }\n"
                        : text->elements + "\nfn store(at: u32, value: T) { epilogue(at, value); }\n");
    } else if (spec_.quads) {
      source_.print("fn store_quad(at: u32, value: vec4<f32>) { " + quads(kOut).assign("at / 4u", "value") + " }\n");
    } else {
      const std::string stored = memory(kOut, size_bytes(dtype(kOut)), wgsl_type(compute_)).assign("at", "value");
      source_.print("fn store(at: u32, value: T) { " + stored + " }\n");
    }
  }

  void use_files() {
    if (form_ == ConvolutionForm::element) {
      source_.use("convolution_element");
      source_.print("fn mul_add(a: T, b: T, c: T) -> T { return " + specialise("mul_add(a, b, c)", compute_) + "; }\n");
      return;
    }
    if (spec_.width) {
      source_.use("convolution_lines");
      source_.use(spec_.quads ? "convolution_lines_quads" : "convolution_lines_elements");
      return source_.use_subgroups();
    }
    source_.use("convolution");
    source_.use(form_ == ConvolutionForm::output ? "convolution_output" : "convolution_weight");
    source_.use(spec_.packed ? "convolution_packed" : "convolution_strided");
    source_.use(spec_.shared ? "convolution_subgroup" : "convolution_lane");
    if (spec_.shared) source_.use_subgroups();
  }

  // Operands that are only read may share a buffer.
  void print_binding(ConvolutionOperand operand, const std::string& element) {
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
    const Memory buffer = memory(operand, size_bytes(dtype(operand)), "u32");
    source_.use(compute_type(dtype(operand)));
    source_.print(std::string("fn ") + name + "(at: u32) -> T { return " +
                  from_raw(dtype(operand), compute_, buffer.load("at")) + "; }\n");
  }

  const ConvolutionSpec& spec_;
  ShaderSource source_;
  const Target& target_;
  const ConvolutionForm form_;
  const Compute compute_;
  uint32_t bound_ = 0;
};

}  // namespace

std::string print_convolution(const ConvolutionSpec& spec, const Target& target, Pages pages) {
  return Printer(spec, target, pages).print();
}

std::string label_convolution(const ConvolutionSpec& spec) {
  if (spec.epilogue) return spec.epilogue->label;
  const char* const names[] = {"convolution", "convolution_weight", "convolution_element"};
  return std::string(names[spec.form]) + "(" + name(static_cast<DType>(spec.dtype[kX])) + ", " +
         std::to_string(spec.rows) + (spec.packed ? " packed rows" : " rows") + (spec.width ? " by lines)" : ")");
}

}  // namespace torch_webgpu
