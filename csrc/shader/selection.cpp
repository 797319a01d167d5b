#include "shader/selection.h"

namespace torch_webgpu {
namespace {

const char* const kKinds[] = {"median", "nanmedian", "mode", "mode_of_sorted"};

std::string number(uint32_t value) { return std::to_string(value) + "u"; }

std::string raw(DType dtype) {
  switch (size_bytes(dtype)) {
    case 8: return "vec2<u32>(m2[at * 2u], m2[at * 2u + 1u])";
    case 4: return "m2[at]";
    case 2: return "((m2[at >> 1u] >> ((at & 1u) * 16u)) & 0xffffu)";
    default: return "((m2[at >> 2u] >> ((at & 3u) * 8u)) & 0xffu)";
  }
}

std::string store(DType dtype) {
  switch (size_bytes(dtype)) {
    case 8: return "  m0[row * 2u] = raw.x;\n  m0[row * 2u + 1u] = raw.y;\n";
    case 4: return "  m0[row] = raw;\n";
    default: {
      const std::string per = number(4 / size_bytes(dtype)), bits = number(8 * size_bytes(dtype));
      return "  let shift = (row % " + per + ") * " + bits + ";\n  atomicAnd(&m0[row / " + per + "], ~(" +
             (size_bytes(dtype) == 2 ? "0xffffu" : "0xffu") + " << shift));\n  atomicOr(&m0[row / " + per +
             "], raw << shift);\n";
    }
  }
}

}  // namespace

std::string print_selection(const SelectionSpec& spec, const Target& target) {
  const auto kind = static_cast<SelectionKind>(spec.kind);
  const auto dtype = static_cast<DType>(spec.dtype);
  const Compute compute = compute_type(dtype);
  const bool wide = compute == Compute::i64,
             mode = kind == SelectionKind::mode || kind == SelectionKind::mode_of_sorted;
  ShaderSource source(target);
  source.bind(0, size_bytes(dtype) < 4 ? "atomic<u32>" : "u32");
  source.bind(1, "u32");
  source.bind(2, "u32");
  source.use(compute);
  source.use(wide ? "keys_wide" : "keys");
  source.use(mode ? "mode" : "median");
  source.print(std::string("const HAS_NAN = ") + (compute == Compute::f32 ? "true" : "false") + ";\n");
  source.print("const WORKGROUP = " + number(target.workgroup) +
               ";\nconst SORTED = " + (kind == SelectionKind::mode_of_sorted ? "true" : "false") +
               ";\nconst IGNORES_NAN = " + (kind == SelectionKind::nanmedian ? "true" : "false") + ";\n");
  for (const auto& [name, word] : {std::pair{"rows", SelectionParams::kRows},
                                   {"length", SelectionParams::kLength},
                                   {"chunk", SelectionParams::kChunk},
                                   {"input_offset", SelectionParams::kInput}}) {
    source.print(std::string("fn ") + name + "() -> u32 { return " + param(word) + "; }\n");
  }
  source.print("fn key(at: u32) -> Key { return key_of_" + std::string(name(compute)) + "(" +
               from_raw(dtype, raw(dtype)) + "); }\n");
  source.print("fn store(row: u32, index: u32) {\n  let at = input_offset() + row * length() + index;\n  let raw = " +
               raw(dtype) + ";\n" + store(dtype) + "  m1[row * 2u] = index;\n  m1[row * 2u + 1u] = 0u;\n}\n");
  return source.text();
}

std::string label_selection(const SelectionSpec& spec) {
  return std::string(kKinds[spec.kind]) + "(" + name(static_cast<DType>(spec.dtype)) + ")";
}

}  // namespace torch_webgpu
