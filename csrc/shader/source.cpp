#include "shader/source.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <utility>

#include "shader/wgsl_text.h"

namespace torch_webgpu {
namespace {

std::string variable(uint32_t binding, const std::string& name, const std::string& element) {
  return "@group(0) @binding(" + std::to_string(binding) + ") var<storage, read_write> " + name + ": array<" + element +
         ">;\n";
}

uint32_t bytes_of(std::string_view type) { return type.starts_with("vec4") ? 16 : type.starts_with("vec2") ? 8 : 4; }

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

constexpr std::string_view kParams = "params[", kGiven = "given[";

// The parameters at places known when printing are read once, into variables: drivers of software adapters leave a
// uniform that is read in a loop there, each time with its checks. `given` is for places that are computed.
std::string copy_of_params(std::string_view text) {
  size_t count = 1;
  for (size_t at = text.find(kParams); at != std::string_view::npos; at = text.find(kParams, at + 1)) {
    count = std::max(count, 1 + std::strtoul(text.data() + at + kParams.size(), nullptr, 10));
  }
  std::string result = "var<private> params: array<vec4<u32>, " + std::to_string(count) + ">;\nfn take_params() {\n";
  for (size_t i = 0; i < count; ++i) {
    const std::string index = std::to_string(i) + "]";
    result.append("  ").append(kParams).append(index).append(" = ").append(kGiven).append(index).append(";\n");
  }
  return result + "}\n";
}

// Barriers must depend on uniforms alone, and a variable never counts as one.
bool has_barrier(std::string_view text) {
  return text.find("Barrier(") != std::string_view::npos ||
         text.find("workgroupUniformLoad(") != std::string_view::npos;
}

// Behind what indexes and selects: `[i].x` of `m0[i].x = 1`.
size_t behind_access(std::string_view text, size_t at) {
  while (at < text.size() && (text[at] == '[' || text[at] == '.')) {
    if (text[at++] == '.') {
      while (at < text.size() && is_word(text[at])) ++at;
      continue;
    }
    for (size_t depth = 1; at < text.size() && depth > 0; ++at) depth += (text[at] == '[') - (text[at] == ']');
  }
  return std::min(text.find_first_not_of(' ', at), text.size());
}

// Whether the text assigns to elements of a variable or takes their address. Where this errs, the text does not
// compile.
bool is_written(std::string_view text, std::string_view variable) {
  for (size_t at = text.find(variable); at != std::string_view::npos; at = text.find(variable, at + 1)) {
    const size_t end = at + variable.size();
    if ((at > 0 && is_word(text[at - 1])) || (end < text.size() && is_word(text[end]))) continue;
    if (at > 0 && text[at - 1] == '&') return true;
    const std::string_view next = text.substr(behind_access(text, end), 3);
    const bool plain = next.starts_with('=') && !next.starts_with("==");
    const bool combined =
        next.size() > 1 && next[1] == '=' && std::string_view("+-*/%&|^").find(next[0]) != std::string_view::npos;
    if (plain || combined || next.starts_with("++") || next.starts_with("--") || next == "<<=" || next == ">>=")
      return true;
  }
  return false;
}

// Declarations of storage, narrowed to reading where nothing writes: kernels that share inputs then need no barrier
// between them, and GPUs may cache what is loaded. Functions that store to pages stand between the declarations.
std::string narrowed(const std::string& declarations, std::string_view text) {
  constexpr std::string_view kAccess = "read_write> ";
  std::string result;
  for (size_t at = 0; at < declarations.size();) {
    const size_t end = declarations.find('\n', at) + 1;
    std::string line = declarations.substr(at, end - at);
    if (const size_t access = line.find(kAccess); access != std::string::npos) {
      const size_t name = access + kAccess.size();
      const std::string variable = line.substr(name, line.find(':') - name);
      const bool atomic = line.find("atomic<") != std::string::npos;
      if (!atomic && !is_written(text, variable) && !is_written(declarations, variable)) {
        line.replace(access, kAccess.size(), "read> ");
      }
    }
    result += line;
    at = end;
  }
  return result;
}

std::string with_params(std::string text) {
  if (!has_barrier(text)) return copy_of_params(text) + text;
  for (size_t at = text.find(kParams); at != std::string::npos; at = text.find(kParams, at)) {
    text.replace(at, kParams.size(), kGiven);
  }
  return "fn take_params() {}\n" + text;
}

}  // namespace

void ShaderSource::use(std::string_view file) {
  if (std::find(files_.begin(), files_.end(), file) != files_.end()) return;
  files_.emplace_back(file);
  for (const std::string_view needed : wgsl_file(file).needs) use(needed);
}

void ShaderSource::use(Compute type) {
  use("storage");
  use("convert");
  use(name(type));
}

void ShaderSource::use(DType dtype) {
  use(compute_type(dtype));
  switch (dtype) {
    case DType::u32: return use("i64");
    case DType::f8e4m3fn:
    case DType::f8e4m3fnuz:
    case DType::f8e5m2:
    case DType::f8e5m2fnuz: return use("f8");
    default: return;
  }
}

void ShaderSource::bind(uint32_t index, std::string_view element) {
  if (is_paged(index)) return bind_pages(index, std::string(element));
  head_ += variable(pages_.first(index), "m" + std::to_string(index), std::string(element));
}

void ShaderSource::bind_pages(uint32_t index, const std::string& element) {
  const std::string name = "m" + std::to_string(index);
  const bool atomic = element == "atomic<u32>";
  const std::string type = atomic ? "u32" : element;
  const uint32_t count = pages_.count(index), length = target_.page_bytes / bytes_of(type);
  const auto page = [&](uint32_t i) { return name + "_" + std::to_string(i); };
  // A function of an element: `statement` gets the element as an expression.
  const auto print = [&](const std::string& function, const std::string& arguments, const std::string& result,
                         const auto& statement) {
    head_ += "fn " + function + "_" + name + "(i: u32" + arguments + ")" + result + " {\n";
    for (uint32_t i = 0; i < count; ++i) {
      const std::string from = i ? " - " + std::to_string(i * length) + "u" : "";
      const std::string body = statement(page(i) + "[i" + from + "]");
      const std::string end = result.empty() ? " return;" : "";
      head_ += i + 1 == count ? "  " + body + "\n"
                              : "  if (i < " + std::to_string((i + 1) * length) + "u) { " + body + end + " }\n";
    }
    head_ += "}\n";
  };
  for (uint32_t i = 0; i < count; ++i) head_ += variable(pages_.first(index) + i, page(i), element);
  print("fetch", "", " -> " + type,
        [&](const std::string& at) { return "return " + (atomic ? "atomicLoad(&" + at + ")" : at) + ";"; });
  print("put", ", value: " + type, "",
        [&](const std::string& at) { return atomic ? "atomicStore(&" + at + ", value);" : at + " = value;"; });
  if (!atomic) return;
  for (const auto& [function, called] : {std::pair{"and", "atomicAnd"}, {"or", "atomicOr"}, {"add", "atomicAdd"}}) {
    print(function, ", value: u32", " -> u32",
          [&](const std::string& at) { return std::string("return ") + called + "(&" + at + ", value);"; });
  }
  head_ += "struct Swapped_" + name + " { exchanged: bool, old_value: u32, }\n";
  print("swap", ", old: u32, new_value: u32", " -> Swapped_" + name, [&](const std::string& at) {
    return "let r = atomicCompareExchangeWeak(&" + at + ", old, new_value); return Swapped_" + name +
           "(r.exchanged, r.old_value);";
  });
}

std::string ShaderSource::text() const {
  std::string text = body_;
  for (const auto& file : files_) text.append("\n").append(wgsl_file(file).text);
  // Subgroups stay together where they are used, but the analysis does not know that of the copied parameters.
  const char* directives =
      subgroups_ && target_.subgroup_directive ? "enable subgroups;\ndiagnostic(off, subgroup_uniformity);\n" : "";
  const std::string head = directives + narrowed(head_, text);
  return head + "@group(1) @binding(0) var<uniform> given: array<vec4<u32>, " + std::to_string(param_words_ / 4) +
         ">;\n" + with_params(std::move(text));
}

std::string param(uint32_t word) { return "params[" + std::to_string(word / 4) + "]." + "xyzw"[word % 4]; }

std::string param_value(Compute type, uint32_t word) {
  switch (type) {
    case Compute::f32: return "bitcast<f32>(" + param(word) + ")";
    case Compute::i32: return "bitcast<i32>(" + param(word) + ")";
    case Compute::boolean: return "(" + param(word) + " != 0u)";
    default: break;
  }
  std::string text = std::string(wgsl_type(type)) + "(" + param(word);
  for (uint32_t i = 1; i < words_of(type); ++i) text += ", " + param(word + i);
  return text + ")";
}

std::string take_dimension(const std::string& kind, const std::string& name, const std::string& size) {
  const std::string outer = "outer_" + name;
  return "  let " + outer + " = rest / " + size + ";\n  " + kind + " " + name + " = rest - " + outer + " * " + size +
         ";\n  rest = " + outer + ";\n";
}

std::string specialise(std::string_view formula, Compute type, std::string_view library) {
  const WgslFile& own = wgsl_file(name(type));
  std::vector<std::string_view> texts{own.text};
  for (const std::string_view needed : own.needs) texts.push_back(wgsl_file(needed).text);
  if (!library.empty()) texts.push_back(wgsl_file(library).text);
  const auto defines = [&](const std::string& text) {
    return std::any_of(texts.begin(), texts.end(),
                       [&](std::string_view in) { return in.find(text) != std::string_view::npos; });
  };
  std::string result;
  for (size_t at = 0; at < formula.size();) {
    size_t end = at;
    while (end < formula.size() && is_word(formula[end])) ++end;
    if (end == at) {
      result += formula[at++];
      continue;
    }
    const std::string word(formula.substr(at, end - at)), typed = word + "_" + name(type);
    result += defines("fn " + typed + "(") || defines("const " + typed + " ") ? typed : word;
    at = end;
  }
  return result;
}

}  // namespace torch_webgpu
