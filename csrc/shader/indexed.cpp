#include "shader/indexed.h"

#include <algorithm>
#include <sstream>

#include "shader/memory.h"
#include "shader/wgsl_text.h"

namespace torch_webgpu {
namespace {

std::string number(uint32_t value) { return std::to_string(value) + "u"; }
bool is_raw(Element element) { return element >= Element::raw1; }
DType dtype(Element element) { return static_cast<DType>(element); }

class Printer {
 public:
  Printer(const IndexedSpec& spec, const Target& target, Pages pages)
      : spec_(spec),
        row_(*spec.row),
        params_(spec),
        source_(target, pages),
        pages_(pages),
        workgroup_(target.workgroup),
        compute_(static_cast<Compute>(spec.compute)),
        store_(static_cast<IndexedStore>(spec.store)) {}

  std::string print() {
    for (uint32_t binding = 0; binding < spec_.binding_count; ++binding) source_.bind(binding, array_of(binding));
    if (spec_.reports()) {
      const std::string status = std::to_string(pages_.first(spec_.binding_count));
      source_.print("@group(0) @binding(" + status + ") var<storage, read_write> status: array<atomic<u32>>;\n" +
                    "const WRAPS = " + (row_.flags & IndexedRow::wraps ? "true" : "false") + ";\n");
      source_.use("indexed");
    }
    source_.use(compute_);
    for (uint32_t i = 0; i < spec_.operand_count; ++i) {
      if (!is_raw(spec_.element(i))) source_.use(compute_type(dtype(spec_.element(i))));
      if (i >= row_.values) source_.use(Compute::i64);
    }
    source_.print(std::string("alias T = ") + wgsl_type(compute_) + ";\nalias V = " + type_of(0) + ";\n");
    source_.print("fn x(i: u32) -> u32 { let w = " + number(params_.extra() + kWordsPerIndex * spec_.index_count) +
                  " + i; return given[w / 4u][w % 4u]; }\n");
    for (uint32_t i = 0; i < spec_.operand_count; ++i) {
      print_load(i);
    }
    print_constant();
    if (row_.library) print_library();
    if (acts()) print_store();
    if (acts() && row_.flags & IndexedRow::raw) print_setters();
    print_step();
    print_main();
    return source_.text();
  }

 private:
  // Raw rows have no compute type, so there is nothing to specialise.
  std::string typed(const std::string& text) const {
    return row_.flags & IndexedRow::raw ? text : specialise(text, compute_);
  }

  void print_library() {
    std::istringstream names(row_.library);
    for (std::string name; names >> name;) {
      const WgslFile& file = wgsl_file(name);
      source_.print(typed(std::string(file.text)) + "\n");
      for (const std::string_view needed : file.needs) source_.use(needed);
    }
  }

  void print_constant() {
    const std::string type = type_of(0);
    std::string value = "x(i)";
    if (type == "vec2<u32>") value = "vec2<u32>(x(i), x(i + 1u))";
    if (type == "f32" || type == "i32") value = "bitcast<" + type + ">(x(i))";
    if (type == "bool") value = "x(i) != 0u";
    if (type == "vec4<u32>") value = "vec4<u32>(x(i), x(i + 1u), x(i + 2u), x(i + 3u))";
    const Element element = spec_.element(0);
    if (!is_raw(element)) {
      const std::string raw = to_raw(dtype(element), compute_, "value");
      source_.print("fn rounded(value: V) -> V { return " + from_raw(dtype(element), compute_, raw) + "; }\n");
    }
    source_.print("fn constant(i: u32) -> V { return " + value + "; }\n");
  }

  bool acts() const { return row_.flags & IndexedRow::acts; }
  uint32_t bytes(uint32_t operand) const { return size_bytes(spec_.element(operand)); }
  bool is_atomic(uint32_t binding) const {
    return binding == spec_.binding(0) && (store_ == IndexedStore::atomics || store_ == IndexedStore::exchange);
  }

  std::string array_of(uint32_t binding) const {
    if (is_atomic(binding)) return "atomic<u32>";
    uint32_t size = 0;  // the common size of its elements, or 4
    for (uint32_t i = 0; i < spec_.operand_count; ++i) {
      if (spec_.binding(i) == binding) size = size == 0 || size == bytes(i) ? bytes(i) : 4;
    }
    return size == 16 ? "vec4<u32>" : size == 8 ? "vec2<u32>" : "u32";
  }

  Memory memory(uint32_t operand) const {
    const uint32_t binding = spec_.binding(operand);
    return {"m" + std::to_string(binding), bytes(operand), array_of(binding), source_.is_paged(binding)};
  }

  std::string type_of(uint32_t operand) const {
    const Element element = spec_.element(operand);
    if (!is_raw(element)) return operand < row_.values ? wgsl_type(compute_) : "vec2<u32>";
    return bytes(operand) == 16 ? "vec4<u32>" : bytes(operand) == 8 ? "vec2<u32>" : "u32";
  }

  void print_load(uint32_t operand) {
    const Element element = spec_.element(operand);
    std::string value = memory(operand).load_alone("at");
    if (!is_raw(element)) {
      const Compute to = operand < row_.values ? compute_ : Compute::i64;
      value = from_raw(dtype(element), to, value);
    }
    source_.print("fn load" + std::to_string(operand) + "(at: u32) -> " + type_of(operand) + " { return " + value +
                  "; }\n");
  }

  std::string stored(const std::string& value) const {
    const Element element = spec_.element(0);
    return is_raw(element) ? value : to_raw(dtype(element), compute_, value);
  }

  // A word that invocations share is exchanged whole where its elements may be read meanwhile. Raw values may have bits
  // beside a small element.
  void print_store() {
    const Memory out = memory(0);
    const std::string raw = out.alone(stored("value"));
    source_.print("fn store(at: u32, value: V) {\n" +
                  (store_ == IndexedStore::exchange ? out.exchange("at", raw) : out.store("at", raw)) + "}\n");
  }

  // Words of operands beside the output, for rows that keep counts there.
  void print_setters() {
    for (uint32_t i = 1; i < spec_.operand_count; ++i) {
      if (bytes(i) != 4) continue;
      source_.print("fn set" + std::to_string(i) + "(at: u32, value: u32) { " + memory(i).assign("at", "value") +
                    " }\n");
    }
  }

  // Coordinates and places of a step, as variables.
  std::string places(const std::string& step) const {
    std::string text;
    for (uint32_t i = 0; i < spec_.operand_count; ++i) {
      text += "  var i" + std::to_string(i) + " = " + param(params_.offset(i)) + ";\n";
    }
    if (spec_.rank > 0) text += "  var rest = " + step + ";\n";
    for (uint32_t dim = 0; dim < spec_.rank; ++dim) {
      const bool outermost = dim + 1 == spec_.rank;
      const std::string size = param(params_.size(dim)), at = "d" + std::to_string(dim);
      text += outermost ? "  var " + at + " = rest;\n" : take_dimension("var", at, size);
      for (uint32_t i = 0; i < spec_.operand_count; ++i) {
        text += "  i" + std::to_string(i) + " += " + at + " * " + param(params_.stride(i, dim)) + ";\n";
      }
    }
    return text;
  }

  // To the neighbour along the innermost dimension.
  std::string advance() const {
    std::string text = "    d0 += 1u;\n";
    for (uint32_t i = 0; i < spec_.operand_count; ++i) {
      text += "    i" + std::to_string(i) + " += " + param(params_.stride(i, 0)) + ";\n";
    }
    return text;
  }

  // The variables that the body may use, as parameters or as arguments.
  std::string seen(const char* type) const {
    std::string text = std::string("step") + type;
    for (uint32_t dim = 0; dim < spec_.rank; ++dim) text += ", d" + std::to_string(dim) + type;
    for (uint32_t i = 0; i < spec_.operand_count; ++i) text += ", i" + std::to_string(i) + type;
    return text;
  }

  void print_step() {
    if (spec_.index_count > 0) print_found();
    source_.print((acts() ? "fn act(" : "fn value(") + seen(": u32") + (spec_.index_count > 0 ? ", hit: Found" : "") +
                  (acts() ? ") {\n" : ") -> V {\n"));
    if (spec_.index_count > 0) {
      source_.print("  let at = i" + std::to_string(row_.base) + " + hit.by;\n  let valid = hit.valid;\n");
    }
    source_.print("  " + typed(row_.body) + "\n}\n");
  }

  // How far the indices lead from the base, if all are in range.
  void print_found() {
    source_.print("struct Found { by: u32, valid: bool, }\nfn found(" + index_places(": u32") +
                  ") -> Found {\n  var by = 0u;\n  var valid = true;\n");
    for (uint32_t j = 0; j < spec_.index_count; ++j) {
      const uint32_t extra = params_.extra() + kWordsPerIndex * j;
      const std::string operand = std::to_string(spec_.operand_count - spec_.index_count + j),
                        name = "index" + std::to_string(j);
      source_.print("  let " + name + " = resolve(load" + operand + "(i" + operand + "), " + param(extra) + ", " +
                    param(extra + 2) + ");\n  valid = valid && " + name + " != NONE;\n  by += " + name + " * " +
                    param(extra + 1) + ";\n");
    }
    source_.print("  return Found(by, valid);\n}\n");
  }
  std::string index_places(const char* type) const {
    std::string text;
    for (uint32_t i = spec_.operand_count - spec_.index_count; i < spec_.operand_count; ++i) {
      text += (text.empty() ? "i" : ", i") + std::to_string(i) + type;
    }
    return text;
  }
  // Indices that stand still are looked up once for a run.
  std::string find() const { return spec_.still ? "  let hit = found(" + index_places("") + ");\n" : ""; }
  std::string arguments() const {
    if (spec_.index_count == 0) return seen("");
    return seen("") + (spec_.still ? ", hit" : ", found(" + index_places("") + ")");
  }

  void print_main() {
    if (!acts() && store_ != IndexedStore::words) print_store();
    source_.print("@compute @workgroup_size(" + std::to_string(workgroup_) +
                  ")\nfn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {\n"
                  "  take_params();\n  let begin = group.x * " +
                  param(IndexedParams::kChunk) + ";\n  let end = min(begin + " + param(IndexedParams::kChunk) + ", " +
                  param(IndexedParams::kSteps) +
                  ");\n  for (var turn = begin + lane; turn < end; turn += " + number(workgroup_) + ") {\n");
    if (store_ == IndexedStore::words) {
      print_word();
    } else {
      const std::string call = acts() ? "act(" + arguments() + ");\n" : "store(i0, value(" + arguments() + "));\n";
      if (spec_.run > 1) {
        source_.print("  var step = turn * " + number(spec_.run) + ";\n" + places("step") + find() +
                      "  for (var j = 0u; j < " + number(spec_.run) + "; j++) {\n    " + call + "    step += 1u;\n" +
                      advance() + "  }\n");
      } else {
        source_.print("  let step = turn;\n" + places("step") + "  " + call);
      }
    }
    source_.print("  }\n}\n");
  }

  // The word's owner keeps the bits that are not the tensor's. With runs the word begins with its first element, and
  // all of its elements are neighbours.
  void print_word() {
    const Memory out = memory(0);
    const std::string per = out.elements_per_word(), offset = param(params_.offset(0)),
                      element = out.alone(stored("value(" + arguments() + ")"));
    if (spec_.run > 1) {
      source_.print("  let word = " + offset + " / " + per + " + turn;\n  var bits = 0u;\n  var step = turn * " + per +
                    ";\n" + places("step") + find() + "  for (var j = 0u; j < " + per +
                    "; j++) {\n    bits |= " + out.shifted(element, "j") + ";\n    step += 1u;\n" + advance() +
                    "  }\n  " + out.assign("word", "bits") + "\n");
      return;
    }
    source_.print("  let word = " + offset + " / " + per + " + turn;\n  var bits = " + out.word("word") +
                  ";\n  for (var j = 0u; j < " + per + "; j++) {\n    let step = turn * " + per + " + j - " + offset +
                  " % " + per + ";\n    if (step < " + param(IndexedParams::kElements) + ") {\n" + places("step") +
                  "      bits = " + out.inserted("bits", element, "j") + ";\n    }\n  }\n  " +
                  out.assign("word", "bits") + "\n");
  }

  const IndexedSpec& spec_;
  const IndexedRow& row_;
  const IndexedParams params_;
  ShaderSource source_;
  const Pages pages_;
  const uint32_t workgroup_;
  const Compute compute_;
  const IndexedStore store_;
};

}  // namespace

Element raw_element(uint32_t size_bytes) {
  switch (size_bytes) {
    case 1: return Element::raw1;
    case 2: return Element::raw2;
    case 4: return Element::raw4;
    case 8: return Element::raw8;
    default: return Element::raw16;
  }
}

uint32_t size_bytes(Element element) {
  if (!is_raw(element)) return size_bytes(dtype(element));
  return 1u << (static_cast<uint32_t>(element) - static_cast<uint32_t>(Element::raw1));
}

std::string print_indexed(const IndexedSpec& spec, const Target& target, Pages pages) {
  return Printer(spec, target, pages).print();
}

std::string label_indexed(const IndexedSpec& spec) {
  std::string label = std::string(spec.row->name) + "(";
  for (uint32_t i = 0; i < spec.operand_count; ++i) {
    const Element element = spec.element(i);
    label +=
        (i ? ", " : "") + (is_raw(element) ? std::to_string(size_bytes(element)) + " bytes" : name(dtype(element)));
  }
  return label + ")";
}

}  // namespace torch_webgpu
