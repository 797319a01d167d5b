#include "shader/convolution.h"

#include <span>

#include "shader/matmul_tile.h"
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
    if (is_tiled(form_)) return print_tiled();
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
    print_bias(memory(kBias, size_bytes(dtype(kBias)), "u32"));
    use_files();
    return source_.text();
  }

 private:
  DType dtype(ConvolutionOperand operand) const { return static_cast<DType>(spec_.dtype[operand]); }
  uint32_t binding(ConvolutionOperand operand) const { return spec_.binding[operand]; }
  Memory memory(ConvolutionOperand operand, uint32_t bytes, const std::string& array) const {
    return {"m" + std::to_string(binding(operand)), bytes, array, source_.is_paged(binding(operand))};
  }
  // Tiled: operands that share a buffer are of one dtype, and bound as quads if one of them is loaded so.
  std::string tiled_array(ConvolutionOperand operand) const {
    const auto in_quads = [&](ConvolutionOperand other, Walk walk) {
      return binding(other) == binding(operand) && (walk == Walk::along || walk == Walk::across);
    };
    if (operand == kOut) return spec_.quads ? array_of_quads(size_bytes(dtype(kOut))) : "u32";
    const bool quads = in_quads(kX, walk_x()) || in_quads(kRow, walk_row());
    return quads ? array_of_quads(size_bytes(dtype(operand))) : "u32";
  }
  Memory tiled(ConvolutionOperand operand) const {
    return memory(operand, size_bytes(dtype(operand)), tiled_array(operand));
  }
  Walk walk_x() const { return static_cast<Walk>(spec_.walk_x); }
  Walk walk_row() const { return static_cast<Walk>(spec_.walk_row); }

  std::string print_tiled() {
    const bool is_output = form_ == ConvolutionForm::tiled_output;
    for (const ConvolutionOperand operand : {kOut, kX, kRow, kBias}) {
      if ((operand == kOut && spec_.epilogue) || (operand == kBias && !spec_.has_bias)) continue;
      print_binding(operand, tiled_array(operand));
    }
    const auto constant = [&](const char* name, const std::string& value) {
      source_.print(std::string("const ") + name + " = " + value + ";\n");
    };
    const auto is = [](bool value) { return value ? "true" : "false"; };
    source_.use(Compute::f32);
    source_.print("alias T = f32;\n");
    constant("AXES", number(spec_.axes));
    constant(is_output ? "LINES_AT_ONCE" : "ROWS_AT_ONCE", walk_row() == Walk::across ? "4u" : "1u");
    if (is_output) {
      constant("HAS_GAP", is(spec_.has_gap));
      constant("WHOLE", is(spec_.whole));
      constant("PIXELS_ARE_ROWS", is(spec_.turned));
      print_bias(tiled(kBias));
    } else {
      constant("TAPS_OUTSIDE", is(spec_.turned));
    }
    print_params();
    print_tiled_store();
    source_.use(is_output ? "convolution_tile_output" : "convolution_tile_weight");
    if (is_output) source_.use(spec_.whole ? "convolution_tile_whole" : "convolution_tile_split");
    const std::string store = is_output ? "convolution_tile_" : "convolution_tile_weight_";
    source_.use(store + (spec_.quads ? "fours" : "elements"));
    const bool x_is_a = is_output && spec_.turned;
    const MatmulSide x{x_is_a ? 'a' : 'b', "", dtype(kX), walk_x(), tiled(kX), "", is_output ? "pixel" : "window"};
    const MatmulSide rows{x_is_a ? 'b' : 'a',           "", dtype(kRow), walk_row(), tiled(kRow), "",
                          is_output ? "weight" : "grad"};
    source_.print(print_matmul_tile(kMatmulTiles[spec_.rows], x_is_a ? x : rows, x_is_a ? rows : x));
    return source_.text();
  }

  void print_tiled_store() {
    if (spec_.epilogue) return print_store();
    if (spec_.quads) {
      source_.use("halves");
      source_.print("fn store_quad(at: u32, value: vec4<f32>) { " +
                    tiled(kOut).assign("at >> 2u", packed_quad_of_floats(dtype(kOut), "value")) + " }\n");
    } else {
      source_.print("fn store(at: u32, value: f32) {\n" +
                    tiled(kOut).store("at", to_raw(dtype(kOut), Compute::f32, "value")) + "}\n");
    }
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
    const size_t axes = std::size(kConvolutionAxes) - (is_tiled(form_) ? 0 : kTiledAxes);
    for (const auto& [name, type] : std::span(kConvolutionAxes).first(axes)) {
      source_.print(std::string("fn ") + name + "() -> vec3<" + type + "> { return bitcast<vec3<" + type +
                    ">>(vec3<u32>(" + param(word) + ", " + param(word + 1) + ", " + param(word + 2) + ")); }\n");
      word += 3;
    }
  }

  void print_bias(const Memory& buffer) {
    if (spec_.has_bias) print_load("load_bias_at", kBias, buffer);
    source_.print(std::string("fn load_bias(channel: u32) -> T { return ") +
                  (spec_.has_bias ? "load_bias_at(bias_first() + channel)" : "T()") + "; }\n");
  }

  void print_load(const char* name, ConvolutionOperand operand) {
    print_load(name, operand, memory(operand, size_bytes(dtype(operand)), "u32"));
  }
  void print_load(const char* name, ConvolutionOperand operand, const Memory& buffer) {
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
  const char* const names[] = {"convolution", "convolution_weight", "convolution_element", "convolution",
                               "convolution_weight"};
  const auto form = static_cast<ConvolutionForm>(spec.form);
  if (is_tiled(form)) {
    const MatmulTile& tile = kMatmulTiles[spec.rows];
    const auto x = static_cast<Walk>(spec.walk_x), row = static_cast<Walk>(spec.walk_row);
    const auto dtype = static_cast<DType>(spec.dtype[kX]);
    const bool packed = stay_packed(tile, dtype, x, static_cast<DType>(spec.dtype[kRow]), row);
    return std::string(names[spec.form]) + "(" + name(dtype) + ", " + tile.name + ", slices of " +
           std::to_string(packed ? tile.half_slice : tile.slice) + (spec.has_gap ? ", by phases, x by " : ", x by ") +
           kWalkNames[spec.walk_x] + ", rows by " + kWalkNames[spec.walk_row] +
           (form == ConvolutionForm::tiled_output && !spec.whole ? ", split taps)" : ")");
  }
  return std::string(names[spec.form]) + "(" + name(static_cast<DType>(spec.dtype[kX])) + ", " +
         std::to_string(spec.rows) + (spec.packed ? " packed rows" : " rows") + (spec.width ? " by lines)" : ")");
}

}  // namespace torch_webgpu
