#include "shader/multi_tensor.h"

#include <algorithm>
#include <sstream>
#include <vector>

#include "shader/memory.h"

namespace torch_webgpu {
namespace {

constexpr uint32_t kOperandBits = 7, kCountBits = 5, kAbsentDType = 7;
constexpr uint32_t kWrittenAt = 1 + kMultiOperands + kMultiOperands * kCountBits;
static_assert(kWrittenAt + kMultiOperands <= 64);

std::vector<std::string> words_of(const char* text) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

uint32_t count_words(const char* text) {
  uint32_t count = 0;
  for (const char* at = text; *at; ++at) count += *at != ' ' && (at == text || at[-1] == ' ');
  return count;
}

std::string number(uint32_t value) { return std::to_string(value) + "u"; }
std::string string_of(uint32_t value) { return std::to_string(value); }

class Printer {
 public:
  Printer(const MultiSpec& spec, const Target& target)
      : spec_(spec), at_(spec), source_(target), target_(target), compute_(compute_type(spec.operands[0].dtype)) {}

  std::string print() {
    source_.take_param_words(kMultiParamWords);
    uint32_t binding = 0;
    for (uint32_t column = 0; column < spec_.column_count(); ++column) {
      first_binding_[column] = binding;
      for (uint32_t i = 0; i < spec_.counts[column]; ++i) source_.bind(binding++, element_of(column));
    }
    source_.use(compute_);
    for (const auto& operand : spec_.operands) {
      if (operand.column != kNoColumn) source_.use(compute_type(operand.dtype));
    }
    source_.print(std::string("alias T = ") + wgsl_type(compute_) + ";\nconst WORKGROUP = " +
                  number(target_.workgroup) + ";\nconst VARIANT = " + number(spec_.variant) + ";\n");
    print_param("tensors", MultiParams::kTensors);
    print_param("chunk", MultiParams::kChunk);
    print_table();
    const auto names = words_of(spec_.program ? spec_.program->operands : "out a b c");
    for (uint32_t i = 0; i < names.size(); ++i) print_operand(i, names[i].substr(0, names[i].find(':')));
    if (spec_.program) {
      uint32_t word = MultiParams::kNamed;
      for (const auto& name : words_of(spec_.program->params)) print_param(name, word++);
      source_.use(spec_.program->file);
    } else {
      print_formula();
    }
    if (!spec_.program || !spec_.program->joins) source_.print("fn leave(lane: u32) {}\n");
    source_.use("multi_tensor");
    return source_.text();
  }

 private:
  void print_param(const std::string& name, uint32_t word) {
    source_.print("fn " + name + "() -> u32 { return " + param(word) + "; }\n");
  }

  uint32_t bytes(uint32_t operand) const { return size_bytes(spec_.operands[operand].dtype); }
  std::string element_of(uint32_t column) const {
    switch (spec_.element_words(column)) {
      case 4: return "vec4<u32>";
      case 2: return "vec2<u32>";
      default: return "u32";
    }
  }

  // The workgroup's tensor, in variables that `enter` sets from the table.
  void print_table() {
    std::string variables = "var<private> size: u32;\n", body;
    const auto take = [&](const std::string& name, const std::string& value) {
      variables += "var<private> " + name + ": u32;\n";
      body += "  " + name + " = " + value + ";\n";
    };
    uint32_t place = 0, present = 0;
    for (uint32_t i = 0; i < kMultiOperands; ++i) {
      if (!spec_.is_chosen(i)) continue;
      const uint32_t word = MultiParams::kPlaces + place / MultiParams::kPlacesPerWord,
                     bit = place % MultiParams::kPlacesPerWord * MultiParams::kPlaceBits;
      take("c" + string_of(i), "extractBits(entry(at + " + number(word) + "), " + number(bit) + ", " +
                                   number(MultiParams::kPlaceBits) + ")");
      ++place;
    }
    for (uint32_t i = 0; i < kMultiOperands; ++i) {
      if (spec_.operands[i].column == kNoColumn) continue;
      take("o" + string_of(i), "entry(at + " + number(at_.offset(present++)) + ")");
    }
    if (at_.own_number) take("own", "entry(at + " + number(at_.own_number) + ")");
    source_.print(variables +
                  "fn entry(word: u32) -> u32 { return given[word / 4u][word % 4u]; }\n"
                  "fn first_chunk(tensor: u32) -> u32 { return entry(" +
                  number(at_.table) + " + tensor * " + number(at_.entry) +
                  "); }\n"
                  "fn enter(tensor: u32) {\n  let at = " +
                  number(at_.table) + " + tensor * " + number(at_.entry) + ";\n  size = entry(at + " +
                  number(MultiParams::kLength) + ");\n" + body + "}\n");
  }

  // A quad of several elements of the array.
  static std::string place_of(uint32_t word, uint32_t words, uint32_t wide) {
    return "at * " + number(words / wide) + (word ? " + " + number(word / wide) : "");
  }
  static std::string elements_at(const Memory& memory, uint32_t words, uint32_t wide) {
    std::string parts;
    for (uint32_t word = 0; word < words; word += wide) {
      parts += (word ? ", " : "") + memory.element(place_of(word, words, wide));
    }
    return (words == 2 ? "vec2<u32>(" : "vec4<u32>(") + parts + ")";
  }

  // `text` with the binding that is the tensor's in place of its `$`.
  std::string choose(uint32_t operand, const std::string& text) const {
    const uint32_t column = spec_.operands[operand].column, count = spec_.counts[column];
    const auto of = [&](uint32_t i) {
      std::string result = text;
      const std::string memory = "m" + string_of(first_binding_[column] + i);
      for (size_t at = result.find('$'); at != std::string::npos; at = result.find('$')) result.replace(at, 1, memory);
      return result;
    };
    if (count == 1) return "  " + of(0) + "\n";
    std::string branches = "  switch (c" + string_of(operand) + ") {\n";
    for (uint32_t i = 0; i < count; ++i) {
      branches += (i + 1 < count ? "    case " + number(i) : std::string("    default")) + ": { " + of(i) + " }\n";
    }
    return branches + "  }\n";
  }

  // Raw elements as words: elements_<name>(step) four of them, element_<name>() one.
  void print_operand(uint32_t operand, const std::string& name) {
    const DType dtype = spec_.operands[operand].dtype;
    if (spec_.operands[operand].column == kNoColumn) {
      const bool of_one = spec_.program && words_of(spec_.program->operands)[operand].ends_with(":1");
      const std::string kind = of_one ? "T" : "vec4<T>";
      source_.print("fn load_" + name + (of_one ? "()" : "(step: u32)") + " -> " + kind + " { return " + kind +
                    "(); }\nfn store_" + name + "(step: u32, value: " + kind + ") {}\n");
      return;
    }
    const std::string offset = "o" + string_of(operand);
    const uint32_t column = spec_.operands[operand].column, wide = spec_.element_words(column);
    const bool is_written = spec_.operands[operand].written;
    const Memory memory{"$", bytes(operand), element_of(column)};
    const auto loaded = [&](const std::string& raw) { return from_raw(dtype, compute_, raw); };
    const auto raw_of = [&](const std::string& value) { return to_raw(dtype, compute_, value); };
    if (spec_.operands[operand].single) {
      source_.print("fn element_" + name + "() -> u32 {\n  let at = " + offset + ";\n" +
                    choose(operand, "return " + memory.load_alone("at") + ";") + "}\nfn load_" + name +
                    "() -> T { return " + loaded("element_" + name + "()") + "; }\nfn store_" + name +
                    "(place: u32, value: T) {\n");
      if (is_written) {  // such an element has a word of its own
        source_.print("  let at = " + offset + " + place;\n  let raw = " + raw_of("value") + ";\n" +
                      choose(operand, memory.assign(memory.word_index("at"), "raw")));
      }
      source_.print("}\n");
      return;
    }
    std::string load, store;
    const bool whole = array_of_quads(bytes(operand)) == memory.array;  // a quad is one element of the array
    if (!spec_.aligned) {
      load = "return vec4<u32>($[at], $[at + 1u], $[at + 2u], $[at + 3u]);";
      store =
          "$[at] = raw.x; if (left > 1u) { $[at + 1u] = raw.y; } if (left > 2u) { $[at + 2u] = raw.z; } "
          "if (left > 3u) { $[at + 3u] = raw.w; }";
    } else {
      const uint32_t words = bytes(operand);  // of a quad
      load = "let quad = " + (whole ? memory.element("at") : elements_at(memory, words, wide)) + "; return vec4<u32>(";
      for (uint32_t j = 0; j < 4; ++j) load += (j ? ", " : "") + memory.raw_of_quad("quad", j);
      load += ");";
      const std::string quad = memory.packed({"raw.x", "raw.y", "raw.z", "raw.w"});
      if (whole) {
        store = memory.assign("at", quad);
      } else {
        store = "let quad = " + quad + ";";
        for (uint32_t word = 0; word < words; word += wide) {
          const std::string part = std::string("xyzw").substr(word, wide);
          store += " " + memory.assign(place_of(word, words, wide), "quad." + part);
        }
      }
    }
    const std::string at = "  let at = " + offset + (spec_.aligned ? " + step;\n" : " + step * 4u;\n");
    const auto each = [&](const auto& of) { return of("x") + ", " + of("y") + ", " + of("z") + ", " + of("w"); };
    source_.print("fn elements_" + name + "(step: u32) -> vec4<u32> {\n" + at + choose(operand, load) + "}\n");
    source_.print("fn load_" + name + "(step: u32) -> vec4<T> {\n  let raw = elements_" + name +
                  "(step);\n  return vec4<T>(" +
                  each([&](const char* part) { return loaded(std::string("raw.") + part); }) + ");\n}\n");
    source_.print("fn store_" + name + "(step: u32, value: vec4<T>) {\n");
    if (!is_written) return source_.print("}\n");
    source_.print(at + "  let left = size - step * 4u;\n" + "  var raw = vec4<u32>(" +
                  each([&](const char* part) { return raw_of(std::string("value.") + part); }) + ");\n");
    if (spec_.aligned) {
      source_.print("  if (left < 4u) {\n    raw = select(elements_" + name +
                    "(step), raw, vec4<bool>(true, left > 1u, left > 2u, left > 3u));\n  }\n");
    }
    source_.print(choose(operand, store) + "}\n");
  }

  void print_formula() {
    const PointwiseRow& row = *spec_.row;
    if (row.library) {
      source_.use(Compute::f32);  // its functions build on those
      source_.use(row.library);
    }
    const std::string type = wgsl_type(compute_);
    const auto value = [&](const std::string& word) { return "bitcast<" + type + ">(" + word + ")"; };
    const uint32_t number_is = spec_.variant & MultiFormula::kNumberIs;
    std::string parameters, loads, arguments[4];
    for (uint32_t i = 1; i < 4; ++i) {
      const std::string name(1, static_cast<char>('a' + i - 1));
      const bool is_number = i == number_is;
      if (!is_number && spec_.operands[i].column == kNoColumn) continue;
      parameters += (parameters.empty() ? "" : ", ") + name + ": " + type;
      if (is_number) {
        const bool own = spec_.variant & MultiFormula::kOwnNumber;
        loads += "  let " + name + " = vec4<T>(" + value(own ? "own" : param(MultiParams::kNamed + 1)) + ");\n";
      } else {
        loads += "  let " + name + " = " +
                 (spec_.operands[i].single ? "vec4<T>(load_" + name + "())" : "load_" + name + "(step)") + ";\n";
      }
      for (uint32_t j = 0; j < 4; ++j) {
        arguments[j] += (arguments[j].empty() ? "" : ", ") + name + "." + "xyzw"[j];
      }
    }
    source_.print("fn apply(" + parameters + ") -> " + type + " {\n");
    if (row.scalars) {
      const bool own = spec_.variant & MultiFormula::kOwnScalar;
      source_.print("  let s0 = " + value(own ? "own" : param(MultiParams::kNamed)) + ";\n");
    }
    source_.print("  return " + specialise(row.formula, compute_, row.library ? row.library : "") +
                  ";\n}\nfn run(step: u32) {\n" + loads + "  store_out(step, vec4<T>(apply(" + arguments[0] +
                  "), apply(" + arguments[1] + "), apply(" + arguments[2] + "), apply(" + arguments[3] + ")));\n}\n");
  }

  const MultiSpec& spec_;
  const MultiParams at_;
  ShaderSource source_;
  const Target& target_;
  const Compute compute_;
  uint32_t first_binding_[kMultiOperands] = {};
};

}  // namespace

uint32_t MultiSpec::column_count() const {
  uint32_t columns = 0;
  while (columns < kMultiOperands && counts[columns] > 0) ++columns;
  return columns;
}

bool MultiSpec::is_chosen(uint32_t operand) const {
  const uint32_t column = operands[operand].column;
  return column != kNoColumn && counts[column] > 1;
}

// What is stored may be no part of an element, since others may store the rest of it at the same time.
uint32_t MultiSpec::element_words(uint32_t column) const {
  uint32_t words = 4;
  bool has_quads = false;
  for (const auto& operand : operands) {
    if (operand.column != column) continue;
    const bool is_quads = aligned && !operand.single;
    has_quads |= is_quads;
    if (is_quads) {
      words = std::min(words, size_bytes(operand.dtype));
    } else if (operand.written || !operand.single) {
      words = 1;
    }
  }
  return has_quads ? words : 1;
}

uint64_t MultiSpec::operand_bits() const {
  static_assert(kMultiOperands * kOperandBits <= 64 && static_cast<uint32_t>(DType::i16) < kAbsentDType);
  uint64_t bits = 0;
  for (uint32_t i = 0; i < kMultiOperands; ++i) {
    const auto& operand = operands[i];
    const uint64_t dtype = operand.column == kNoColumn ? kAbsentDType : static_cast<uint64_t>(operand.dtype);
    bits |= (dtype << 4 | operand.column) << (i * kOperandBits);
  }
  return bits;
}

uint64_t MultiSpec::binding_bits() const {
  uint64_t bits = aligned ? 1 : 0;
  for (uint32_t i = 0; i < kMultiOperands; ++i) {
    bits |= uint64_t{operands[i].single} << (1 + i) | uint64_t{operands[i].written} << (kWrittenAt + i);
    // A column is never empty, but one that is not there is: its operands tell.
    bits |= uint64_t{counts[i] > 0 ? counts[i] - 1 : 0} << (1 + kMultiOperands + i * kCountBits);
  }
  return bits;
}

MultiSpec MultiSpec::unpack(uint64_t operand_bits, uint64_t binding_bits) {
  MultiSpec spec;
  spec.aligned = binding_bits & 1;
  for (uint32_t i = 0; i < kMultiOperands; ++i) {
    const uint64_t operand = operand_bits >> (i * kOperandBits);
    spec.operands[i].column = operand & 15;
    if (spec.operands[i].column == kNoColumn) continue;
    spec.operands[i].dtype = static_cast<DType>(operand >> 4 & 7);
    spec.operands[i].single = binding_bits >> (1 + i) & 1;
    spec.operands[i].written = binding_bits >> (kWrittenAt + i) & 1;
    const uint32_t column = spec.operands[i].column;
    spec.counts[column] = 1 + (binding_bits >> (1 + kMultiOperands + column * kCountBits) & ((1u << kCountBits) - 1));
  }
  return spec;
}

MultiParams::MultiParams(const MultiSpec& spec) {
  uint32_t several = 0, present = 0;
  for (uint32_t i = 0; i < kMultiOperands; ++i) {
    several += spec.is_chosen(i);
    present += spec.operands[i].column != kNoColumn;
  }
  place_words = (several + kPlacesPerWord - 1) / kPlacesPerWord;
  table = kNamed + (spec.program ? count_words(spec.program->params) : 2);
  entry = offset(present);
  const bool own = spec.row && (spec.variant & (MultiFormula::kOwnScalar | MultiFormula::kOwnNumber));
  own_number = own ? entry++ : 0;
}

std::string print_multi(const MultiSpec& spec, const Target& target) { return Printer(spec, target).print(); }

std::string label_multi(const MultiSpec& spec) {
  std::string label = std::string("foreach ") + (spec.program ? spec.program->name : spec.row->name) + "(";
  for (const auto& operand : spec.operands) {
    if (operand.column != kNoColumn) label += (label.back() == '(' ? "" : ", ") + std::string(name(operand.dtype));
  }
  return label + ")";
}

}  // namespace torch_webgpu
