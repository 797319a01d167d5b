#include "shader/selection.h"

#include "shader/memory.h"

namespace torch_webgpu {
namespace {

const char* const kKinds[] = {"median", "nanmedian", "mode", "mode_of_sorted"};

std::string number(uint32_t value) { return std::to_string(value) + "u"; }

}  // namespace

std::string print_selection(const SelectionSpec& spec, const Target& target, Pages pages) {
  const auto kind = static_cast<SelectionKind>(spec.kind);
  const auto dtype = static_cast<DType>(spec.dtype);
  const Compute compute = compute_type(dtype);
  const bool wide = compute == Compute::i64,
             mode = kind == SelectionKind::mode || kind == SelectionKind::mode_of_sorted;
  ShaderSource source(target, pages);
  const Memory values{"m0", size_bytes(dtype), size_bytes(dtype) < 4 ? "atomic<u32>" : "u32", source.is_paged(0)},
      indices{"m1", size_bytes(DType::i64), "u32", source.is_paged(1)},
      input{"m2", size_bytes(dtype), "u32", source.is_paged(2)};
  source.bind(0, values.array);
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
               from_raw(dtype, input.load_alone("at")) + "); }\n");
  source.print("fn store(row: u32, index: u32) {\n  let at = input_offset() + row * length() + index;\n  let raw = " +
               input.load_alone("at") + ";\n" + values.store("row", "raw") + "  let place = vec2<u32>(index, 0u);\n" +
               indices.store("row", "place") + "}\n");
  return source.text();
}

std::string label_selection(const SelectionSpec& spec) {
  return std::string(kKinds[spec.kind]) + "(" + name(static_cast<DType>(spec.dtype)) + ")";
}

}  // namespace torch_webgpu
