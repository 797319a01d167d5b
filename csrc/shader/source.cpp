#include "shader/source.h"

#include <algorithm>
#include <cctype>

#include "shader/wgsl_text.h"

namespace torch_webgpu {
namespace {

std::string type_file(Compute type) { return std::string("types/") + name(type); }

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

}  // namespace

void ShaderSource::use(std::string_view file) {
  if (std::find(files_.begin(), files_.end(), file) == files_.end()) files_.emplace_back(file);
}

void ShaderSource::use_library(std::string_view file) {
  const size_t folder = file.find('/');
  if (folder != std::string_view::npos) use(std::string(file.substr(0, folder)) + "/common");
  use("angle");
  use(file);
}

void ShaderSource::use(Compute type) {
  use("storage");
  use("convert");
  use(type_file(type));
}

void ShaderSource::bind(uint32_t index, std::string_view element) {
  const std::string number = std::to_string(index);
  head_ += "@group(0) @binding(" + number + ") var<storage, read_write> m" + number + ": array<" +
           std::string(element) + ">;\n";
}

std::string ShaderSource::text() const {
  std::string text;
  if (subgroups_ && target_.subgroup_directive) text += "enable subgroups;\n";
  text += head_ + "@group(1) @binding(0) var<uniform> params: array<vec4<u32>, 64>;\n" + body_;
  for (const auto& file : files_) text.append("\n").append(wgsl_text(file));
  return text;
}

std::string param(uint32_t word) { return "params[" + std::to_string(word / 4) + "]." + "xyzw"[word % 4]; }

std::string param_value(Compute type, uint32_t word) {
  switch (type) {
    case Compute::f32: return "bitcast<f32>(" + param(word) + ")";
    case Compute::i32: return "bitcast<i32>(" + param(word) + ")";
    case Compute::i64: return "vec2<u32>(" + param(word) + ", " + param(word + 1) + ")";
    default: return "(" + param(word) + " != 0u)";
  }
}

std::string specialise(std::string_view formula, Compute type, std::string_view library) {
  const std::string_view own = wgsl_text(type_file(type)), further = library.empty() ? "" : wgsl_text(library);
  const auto defines = [&](const std::string& text) {
    return own.find(text) != std::string_view::npos || further.find(text) != std::string_view::npos;
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
