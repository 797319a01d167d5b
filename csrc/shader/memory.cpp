#include "shader/memory.h"

#include <algorithm>
#include <cctype>

namespace torch_webgpu {
namespace {

std::string number(uint32_t value) { return std::to_string(value) + "u"; }

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
bool is_name(const std::string& text) { return std::all_of(text.begin(), text.end(), is_word); }

// Whether a text is a name, a call, or an expression in parentheses: an operand that needs no further ones.
bool is_primary(const std::string& text) {
  size_t at = 0;
  while (at < text.size() && is_word(text[at])) ++at;
  if (at == text.size()) return true;
  if (text[at] != '(') return false;
  for (int depth = 0; at < text.size(); ++at) {
    depth += text[at] == '(' ? 1 : text[at] == ')' ? -1 : 0;
    if (depth == 0) return at + 1 == text.size();
  }
  return false;
}
std::string primary(const std::string& text) { return is_primary(text) ? text : "(" + text + ")"; }

uint32_t words_of_array(const std::string& array) { return array == "vec4<u32>" ? 4 : array == "vec2<u32>" ? 2 : 1; }

}  // namespace

std::string Memory::mask() const { return bytes == 2 ? "0xffffu" : "0xffu"; }

std::string Memory::elements_per_word() const { return number(4 / bytes); }

std::string Memory::element(const std::string& index) const {
  if (paged) return "fetch_" + name + "(" + index + ")";
  const std::string text = name + "[" + index + "]";
  return array == "atomic<u32>" ? "atomicLoad(&" + text + ")" : text;
}

std::string Memory::assign(const std::string& index, const std::string& value) const {
  if (paged) return "put_" + name + "(" + index + ", " + value + ");";
  const std::string text = name + "[" + index + "]";
  return array == "atomic<u32>" ? "atomicStore(&" + text + ", " + value + ");" : text + " = " + value + ";";
}

std::string Memory::atomic(const std::string& function, const std::string& index, const std::string& value) const {
  if (!paged) return "atomic" + function + "(&" + name + "[" + index + "], " + value + ")";
  const auto lower = static_cast<char>(std::tolower(static_cast<unsigned char>(function[0])));
  return lower + function.substr(1) + "_" + name + "(" + index + ", " + value + ")";
}

std::string Memory::swap(const std::string& index, const std::string& old, const std::string& value) const {
  return (paged ? "swap_" + name + "(" + index : "atomicCompareExchangeWeak(&" + name + "[" + index + "]") + ", " +
         old + ", " + value + ")";
}

std::string Memory::word(const std::string& index) const {
  switch (words_of_array(array)) {
    case 4: return element("(" + index + ") >> 2u") + "[(" + index + ") & 3u]";
    case 2: return element("(" + index + ") >> 1u") + "[(" + index + ") & 1u]";
    default: return element(index);
  }
}

std::string Memory::word_index(const std::string& index) const {
  return bytes == 4 ? index : primary(index) + (bytes == 2 ? " >> 1u" : " >> 2u");
}

std::string Memory::load(const std::string& index) const {
  const uint32_t words = bytes / 4;
  if (words > 1) {
    if (words == words_of_array(array)) return element(index);
    const std::string first = primary(index) + " * " + number(words);
    std::string text = (words == 2 ? "vec2<u32>(" : "vec4<u32>(") + word(first);
    for (uint32_t i = 1; i < words; ++i) text += ", " + word(first + " + " + number(i));
    return text + ")";
  }
  if (words == 1) return word(index);
  const std::string place = primary(index) + (bytes == 2 ? " & 1u" : " & 3u");
  return "(" + word(word_index(index)) + " >> ((" + place + ") * " + number(bits()) + "))";
}

std::string Memory::alone(const std::string& raw) const { return bytes < 4 ? "(" + raw + " & " + mask() + ")" : raw; }

std::string Memory::load_alone(const std::string& index) const { return alone(load(index)); }

std::string Memory::shift_of(const std::string& index) const {
  return "(" + primary(index) + " % " + elements_per_word() + ") * " + number(bits());
}

std::string Memory::store(const std::string& index, const std::string& raw, const std::string& indent) const {
  const uint32_t words = bytes / 4;
  if (words == 1 || (words > 1 && words == words_of_array(array))) return indent + assign(index, raw) + "\n";
  const std::string let = is_name(raw) ? "" : indent + "let raw = " + raw + ";\n", value = is_name(raw) ? raw : "raw";
  if (words > 1) {
    const std::string first = primary(index) + " * " + number(words);
    std::string text = let;
    for (uint32_t i = 0; i < words; ++i) {
      text += indent + assign(first + (i ? " + " + number(i) : ""), value + "." + "xyzw"[i]) + "\n";
    }
    return text;
  }
  const std::string at = primary(index) + " / " + elements_per_word();
  return indent + "let shift = " + shift_of(index) + ";\n" + let + indent +
         atomic("And", at, "~(" + mask() + " << shift)") + ";\n" + indent + atomic("Or", at, value + " << shift") +
         ";\n";
}

std::string Memory::exchange(const std::string& index, const std::string& raw) const {
  const std::string at = primary(index) + " / " + elements_per_word();
  return "  let shift = " + shift_of(index) + ";\n  let raw = " + primary(raw) + " << shift;\n  let kept = ~(" +
         mask() + " << shift);\n  var old = " + element(at) +
         ";\n  loop {\n    let result = " + swap(at, "old", "(old & kept) | raw") +
         ";\n    if (result.exchanged) { break; }\n    old = result.old_value;\n  }\n";
}

std::string Memory::shifted(const std::string& raw, const std::string& place) const {
  return "(" + primary(raw) + " << (" + primary(place) + " * " + number(bits()) + "))";
}

std::string Memory::inserted(const std::string& word, const std::string& raw, const std::string& place) const {
  return "(" + word + " & ~" + shifted(mask(), place) + ") | " + shifted(raw, place);
}

const char* array_of_quads(uint32_t element_bytes) {
  return element_bytes == 1 ? "u32" : element_bytes == 2 ? "vec2<u32>" : "vec4<u32>";
}

std::string Memory::load_quad(const std::string& variable, const std::string& index) const {
  const auto let = [](const std::string& name, const std::string& value) {
    return "  let " + name + " = " + value + ";\n";
  };
  if (bytes != 8) return let(variable, element(index));
  const std::string first = primary(index) + " * 2u";
  return let(variable, element(first)) + let(variable + "h", element(first + " + 1u"));
}

std::string Memory::raw_of_quad(const std::string& variable, uint32_t j) const {
  switch (bytes) {
    case 8: return (j < 2 ? variable : variable + "h") + (j % 2 ? ".zw" : ".xy");
    case 4: return variable + "." + "xyzw"[j];
    case 2: return "(" + variable + (j < 2 ? ".x" : ".y") + (j % 2 ? " >> 16u)" : " & 0xffffu)");
    default: return "((" + variable + " >> " + number(8 * j) + ") & 0xffu)";
  }
}

std::string Memory::packed(const RawQuad& raw) const {
  switch (bytes) {
    case 4: return "vec4<u32>(" + raw[0] + ", " + raw[1] + ", " + raw[2] + ", " + raw[3] + ")";
    case 2: return "vec2<u32>(" + raw[0] + " | (" + raw[1] + " << 16u), " + raw[2] + " | (" + raw[3] + " << 16u))";
    default: return raw[0] + " | (" + raw[1] + " << 8u) | (" + raw[2] + " << 16u) | (" + raw[3] + " << 24u)";
  }
}

std::string Memory::store_quad(const std::string& index, const RawQuad& raw) const {
  if (bytes != 8) return "  " + assign(index, packed(raw)) + "\n";
  const std::string first = primary(index) + " * 2u";
  return "  " + assign(first, "vec4<u32>(" + raw[0] + ", " + raw[1] + ")") + "\n  " +
         assign(first + " + 1u", "vec4<u32>(" + raw[2] + ", " + raw[3] + ")") + "\n";
}

std::string from_raw(DType dtype, Compute type, const std::string& raw) {
  return convert(compute_type(dtype), type, from_raw(dtype, raw));
}

std::string to_raw(DType dtype, Compute type, const std::string& value) {
  return to_raw(dtype, convert(type, compute_type(dtype), value));
}

std::string floats_of_quad(DType dtype, const std::string& variable) {
  const std::string x = variable + ".x", y = variable + ".y";
  switch (dtype) {
    case DType::f16: return "vec4<f32>(unpack2x16float(" + x + "), unpack2x16float(" + y + "))";
    case DType::bf16:
      return "bitcast<vec4<f32>>(vec4<u32>(" + x + " << 16u, " + x + " & 0xffff0000u, " + y + " << 16u, " + y +
             " & 0xffff0000u))";
    default: return "bitcast<vec4<f32>>(" + variable + ")";
  }
}

std::string quad_of_floats(DType dtype, const std::string& value) {
  if (dtype == DType::f32) return "bitcast<vec4<u32>>(" + value + ")";
  const auto raw = [&](char part) { return to_raw(dtype, value + "." + part); };
  return Memory{"", size_bytes(dtype)}.packed({raw('x'), raw('y'), raw('z'), raw('w')});
}

}  // namespace torch_webgpu
