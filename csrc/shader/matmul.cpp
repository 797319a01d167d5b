#include "shader/matmul.h"

namespace torch_webgpu {
namespace {

const char* const kNames[] = {"out", "a", "b", "c"};

std::string raw(DType dtype, const std::string& memory) {
  switch (size_bytes(dtype)) {
    case 8: return "vec2<u32>(" + memory + "[at * 2u], " + memory + "[at * 2u + 1u])";
    case 4: return memory + "[at]";
    case 2: return "(" + memory + "[at >> 1u] >> ((at & 1u) * 16u))";
    default: return "(" + memory + "[at >> 2u] >> ((at & 3u) * 8u))";
  }
}

std::string place(uint32_t operand) {
  const uint32_t at = MatmulParams::offset(operand);
  return "fn at_" + std::string(kNames[operand]) + "(batch: u32, row: u32, column: u32) -> u32 {\n  return " +
         param(at) + " + batch * " + param(at + 1) + " + row * " + param(at + 2) + " + column * " + param(at + 3) +
         ";\n}\n";
}

}  // namespace

std::string print_matmul(const MatmulSpec& spec, const Target& target) {
  ShaderSource source(target);
  const auto compute = static_cast<Compute>(spec.compute);
  const auto dtype = [&](uint32_t operand) { return static_cast<DType>(spec.dtype[operand]); };
  const uint32_t operands = spec.has_c ? 4 : 3, out_bytes = size_bytes(dtype(0));
  uint32_t bindings = 1;
  for (uint32_t i = 1; i < operands; ++i) bindings = std::max<uint32_t>(bindings, spec.binding[i] + 1);
  for (uint32_t i = 0; i < bindings; ++i) source.bind(i, i == 0 && out_bytes < 4 ? "atomic<u32>" : "u32");
  source.use(compute);
  source.use("matmul");
  for (uint32_t i = 0; i < operands; ++i) source.use(compute_type(dtype(i)));

  const std::string type = wgsl_type(compute);
  source.print("alias T = " + type + ";\nconst WORKGROUP = " + std::to_string(target.workgroup) + "u;\n");
  for (const auto& [name, word] : {std::pair{"rows", MatmulParams::kRows},
                                   {"columns", MatmulParams::kColumns},
                                   {"depth", MatmulParams::kDepth},
                                   {"batches", MatmulParams::kBatches},
                                   {"chunk", MatmulParams::kChunk}}) {
    source.print(std::string("fn ") + name + "() -> u32 { return " + param(word) + "; }\n");
  }
  source.print("fn mul_add(a: T, b: T, c: T) -> T { return " + specialise("mul_add(a, b, c)", compute) + "; }\n");
  for (uint32_t i = 0; i < operands; ++i) source.print(place(i));
  for (uint32_t i = 1; i < operands; ++i) {
    const std::string memory = "m" + std::to_string(spec.binding[i]);
    source.print(std::string("fn load_") + kNames[i] + "(batch: u32, row: u32, column: u32) -> T {\n  let at = at_" +
                 kNames[i] + "(batch, row, column);\n  return " +
                 convert(compute_type(dtype(i)), compute, from_raw(dtype(i), raw(dtype(i), memory))) + ";\n}\n");
  }
  source.print(
      "fn store(batch: u32, row: u32, column: u32, product: T) {\n  let at = at_out(batch, row, column);\n  let s0 = " +
      param_value(compute, MatmulParams::kScalars) + ";\n");
  if (spec.has_c) {
    source.print("  let s1 = " + param_value(compute, MatmulParams::kScalars + 2) +
                 ";\n  let c = load_c(batch, row, column);\n");
  }
  const char* formula = spec.has_c ? "add(mul(s0, product), mul(s1, c))" : "mul(s0, product)";
  source.print("  let value = " +
               to_raw(dtype(0), convert(compute, compute_type(dtype(0)), specialise(formula, compute))) + ";\n");
  switch (out_bytes) {
    case 8: source.print("  m0[at * 2u] = value.x;\n  m0[at * 2u + 1u] = value.y;\n}\n"); break;
    case 4: source.print("  m0[at] = value;\n}\n"); break;
    default: {
      const std::string per = std::to_string(4 / out_bytes) + "u", bits = std::to_string(8 * out_bytes) + "u";
      source.print("  let shift = (at % " + per + ") * " + bits + ";\n  atomicAnd(&m0[at / " + per + "], ~(" +
                   (out_bytes == 2 ? "0xffffu" : "0xffu") + " << shift));\n  atomicOr(&m0[at / " + per +
                   "], value << shift);\n}\n");
    }
  }
  return source.text();
}

std::string label_matmul(const MatmulSpec& spec) {
  return std::string("matmul(") + name(static_cast<DType>(spec.dtype[1])) + ") -> " +
         name(static_cast<DType>(spec.dtype[0]));
}

}  // namespace torch_webgpu
