#include "runtime/kernel_text.h"

#include <algorithm>
#include <cctype>

namespace torch_webgpu {
namespace {

struct Token {
  std::string_view text;
  bool dropped = false;  // from the text of a part
  bool renames = true;   // not so the name of a struct's member
};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)); }
bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)); }

// Words, numbers, runs of white space with comments, and single characters.
std::vector<Token> split(std::string_view text) {
  std::vector<Token> tokens;
  const size_t size = text.size();
  for (size_t begin = 0, at = 0; begin < size; begin = at) {
    if (is_digit(text[at])) {
      while (at < size && (is_word(text[at]) || text[at] == '.')) ++at;
      const bool hexadecimal = text.substr(begin, 2) == "0x";
      const char last = text[at - 1];
      if (at < size && (text[at] == '-' || text[at] == '+') && (last == 'p' || (last == 'e' && !hexadecimal))) {
        for (++at; at < size && is_word(text[at]);) ++at;
      }
    } else if (is_word(text[at])) {
      while (at < size && is_word(text[at])) ++at;
    } else if (is_space(text[at])) {
      while (at < size && is_space(text[at])) ++at;
    } else if (text.substr(at, 2) == "//") {
      at = std::min(text.find('\n', at), size);
    } else if (text.substr(at, 2) == "/*") {
      const size_t end = text.find("*/", at);
      at = end == std::string_view::npos ? size : end + 2;
    } else {
      ++at;
    }
    tokens.push_back({text.substr(begin, at - begin)});
  }
  return tokens;
}

bool is_blank(const Token& token) {
  return is_space(token.text.front()) || token.text.starts_with("//") || token.text.starts_with("/*");
}

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

// Walks over the tokens of one text.
class KernelText::Reader {
 public:
  explicit Reader(KernelText& kernel) : kernel_(kernel), tokens_(split(kernel.wgsl_)) {}

  bool read() {
    for (size_t at = first(0); at < tokens_.size();) {
      if (!read_declaration(at)) return false;
    }
    find_writes();
    // A place in the grid follows from the workgroup's where workgroups have one dimension.
    if (contains(kernel_.builtins_, "global_invocation_id")) {
      if (kernel_.workgroup_size_.find(',') != std::string::npos) return false;
      kernel_.needs_ = {"local_invocation_index"};
    }
    return has_entry_ && kernel_.storages_.size() == bound_ && !kernel_.params_.empty();
  }

  std::string part(const std::string& prefix, const std::vector<Access>& storages, const std::string& first_param) {
    std::string result;
    for (size_t at = 0; at < tokens_.size(); ++at) {
      const Token& token = tokens_[at];
      if (token.dropped || is_blank(token)) {
        if (!token.dropped) result += token.text.find('\n') == std::string_view::npos ? ' ' : '\n';
        continue;
      }
      if (!closing_.empty() && closing_.back().at == at) {
        result += closing_.back().text;
        closing_.pop_back();
        continue;
      }
      const bool may_rename = token.renames && !is_member(at);
      if (may_rename && token.text == kernel_.params_) {
        at = open_index(at, result.append(kParams), "[" + first_param + " + u32(", ")]");
        continue;
      }
      if (may_rename) {
        const auto storage = std::find_if(kernel_.storages_.begin(), kernel_.storages_.end(),
                                          [&](const Storage& found) { return found.name == token.text; });
        if (storage != kernel_.storages_.end()) {
          at = print_access(at, storages[storage - kernel_.storages_.begin()], result);
          continue;
        }
        if (contains(kernel_.names_, token.text)) result += prefix;
      }
      result += token.text;
    }
    return result;
  }

 private:
  std::string_view text(size_t at) const { return at < tokens_.size() ? tokens_[at].text : std::string_view(); }
  size_t first(size_t at) const {
    while (at < tokens_.size() && is_blank(tokens_[at])) ++at;
    return at;
  }
  size_t next(size_t at) const { return first(at + 1); }
  // Prints the bracket behind a name as `opening`, and later the one that closes it as `closing`.
  size_t open_index(size_t name, std::string& result, const std::string& opening, const char* closing) {
    const size_t open = next(name);
    result += opening;
    closing_.push_back({behind(open) - 1, closing});
    return open;
  }
  size_t print_access(size_t at, const Access& access, std::string& result) {
    if (!access.load.empty() && !writes(at)) return open_index(at, result.append(access.load), "(u32(", "))");
    result += access.array;
    return access.base.empty() ? at : open_index(at, result, "[" + access.base + " + u32(", ")]");
  }
  bool is_member(size_t at) const {
    while (at > 0 && is_blank(tokens_[at - 1])) --at;
    return at > 0 && tokens_[at - 1].text == ".";
  }
  // Behind the bracket that closes the one here.
  size_t behind(size_t open) const {
    const std::string_view opens = text(open), closes = opens == "("   ? ")"
                                                        : opens == "[" ? "]"
                                                        : opens == "{" ? "}"
                                                                       : ">";
    size_t depth = 0;
    for (size_t at = open; at < tokens_.size(); ++at) {
      if (tokens_[at].text == opens) ++depth;
      if (tokens_[at].text == closes && --depth == 0) return at + 1;
    }
    return tokens_.size();
  }
  size_t behind_text(size_t at, std::string_view wanted) const {
    while (at < tokens_.size() && tokens_[at].text != wanted) ++at;
    return std::min(at + 1, tokens_.size());
  }
  std::string between(size_t begin, size_t end) const {
    std::string result;
    for (size_t at = begin; at < end; ++at) {
      if (!is_blank(tokens_[at])) result += tokens_[at].text;
    }
    return result;
  }
  void drop(size_t begin, size_t end) {
    for (size_t at = begin; at < end; ++at) tokens_[at].dropped = true;
  }

  bool read_declaration(size_t& at) {
    const size_t begin = at;
    const std::string_view word = text(at);
    if (word == "@") return read_attribute(at);
    if (word == "enable" || word == "diagnostic" || word == "requires") {
      at = behind_text(at, ";");
      std::string directive;
      for (size_t i = begin; i < at; ++i) directive += tokens_[i].text;
      kernel_.directives_.push_back(directive);
      drop(begin, at);
    } else if (word == "fn") {
      const size_t name = next(at);
      kernel_.names_.emplace_back(text(name));
      const bool is_entry = is_entry_ && text(name) == kernel_.entry_point_;
      if (is_entry_ && (!is_entry || has_entry_)) return false;
      is_entry_ = false;
      if (is_entry && !read_builtins(next(name))) return false;
      has_entry_ |= is_entry;
      at = behind(behind_text(name, "{") - 1);
    } else if (word == "struct") {
      const size_t name = next(at), open = behind_text(name, "{") - 1;
      kernel_.names_.emplace_back(text(name));
      at = behind(open);
      for (size_t i = open; i < at; ++i) tokens_[i].renames = text(next(i)) != ":";
    } else if (word == "var" || word == "const" || word == "alias" || word == "override") {
      size_t name = next(at);
      if (text(name) == "<") name = first(behind(name));
      kernel_.names_.emplace_back(text(name));
      at = behind_text(name, ";");
    } else if (word == ";") {
      ++at;
    } else {
      return false;
    }
    at = first(at);
    return true;
  }

  bool read_attribute(size_t& at) {
    const size_t begin = at, name = next(at), open = next(name);
    if (text(name) == "group") return read_binding(at);
    if (text(name) == "compute") {
      is_entry_ = true;
      at = open;
    } else if (text(name) == "workgroup_size") {
      at = behind(open);
      kernel_.workgroup_size_ = evaluated(between(open + 1, at - 1));
    } else {
      return false;
    }
    drop(begin, at);
    at = first(at);
    return true;
  }

  // @group(0) @binding(1) var<storage, read> name: type;
  bool read_binding(size_t& at) {
    const size_t begin = at, group = next(next(at)), binding = next(first(behind(group))), number = next(binding),
                 kind = next(first(behind(number))), name = first(behind(kind)), end = behind_text(name, ";");
    if (text(binding) != "binding" || text(kind) != "<") return false;
    const auto which = static_cast<size_t>(std::stoul(between(number + 1, behind(number) - 1)));
    const std::string type = between(next(next(name)), end - 1);
    if (between(group, behind(group)) == "(0)") {
      if (kernel_.storages_.size() <= which) kernel_.storages_.resize(which + 1);
      kernel_.storages_[which] = {std::string(text(name)), type, type.find("atomic") != std::string::npos};
      ++bound_;
    } else if (which == 0 && type == "array<vec4<u32>,64>") {
      kernel_.params_ = text(name);
    } else {
      return false;
    }
    drop(begin, end);
    at = first(end);
    return true;
  }

  bool read_builtins(size_t open) {
    const size_t end = behind(open) - 1;
    for (size_t at = next(open); at < end;) {
      if (text(at) != "@" || text(next(at)) != "builtin") return false;
      const size_t paren = next(next(at)), closed = behind(paren);
      kernel_.builtins_.push_back(between(paren + 1, closed - 1));
      if (!type_of_builtin(kernel_.builtins_.back())) return false;
      drop(at, closed);
      while (at < end && text(at) != ",") {  // a comma within vec3<u32, ...> does not occur
        at = next(at);
      }
      at = next(at);
    }
    return true;
  }

  // Sizes that are constants of the text become numbers, so that equal ones look alike.
  std::string evaluated(const std::string& sizes) const {
    std::string result;
    for (size_t begin = 0; begin < sizes.size();) {
      const size_t end = std::min(sizes.find(',', begin), sizes.size());
      std::string size = sizes.substr(begin, end - begin);
      for (size_t at = 0; at < tokens_.size() && !is_digit(size.front()); ++at) {
        if (text(at) != "const" || text(next(at)) != size) continue;
        const size_t value = behind_text(at, "=");
        size = between(value, behind_text(value, ";") - 1);
      }
      result += (begin ? "," : "") + std::to_string(std::strtoul(size.c_str(), nullptr, 0));
      begin = end + 1;
    }
    while (result.ends_with(",1")) result.resize(result.size() - 2);
    return result;
  }

  void find_writes() {
    for (size_t at = 0; at < tokens_.size(); ++at) {
      if (tokens_[at].dropped) continue;
      for (auto& storage : kernel_.storages_) {
        if (storage.name != tokens_[at].text) continue;
        storage.is_written |= writes(at);
        storage.is_indexed &= text(next(at)) == "[";
      }
    }
  }

  bool writes(size_t at) const {
    size_t before = at;
    while (before > 0 && is_blank(tokens_[before - 1])) --before;
    if (before > 0 && text(before - 1) == "&") return true;
    size_t after = next(at);
    while (text(after) == "[" || text(after) == ".")
      after = text(after) == "[" ? first(behind(after)) : next(next(after));
    const std::string_view one = text(after), two = text(after + 1), three = text(after + 2);
    if (one == "=") return two != "=";
    if (one == two && (one == "+" || one == "-")) return true;
    if (one == two && (one == "<" || one == ">")) return three == "=";
    return two == "=" && std::string_view("+-*/%&|^").find(one) != std::string_view::npos;
  }

  KernelText& kernel_;
  std::vector<Token> tokens_;
  struct Closing {
    size_t at;
    const char* text;
  };
  std::vector<Closing> closing_;  // brackets behind indices that are printed in another way
  bool is_entry_ = false, has_entry_ = false;
  size_t bound_ = 0;
};

const char* KernelText::type_of_builtin(std::string_view name) {
  for (const char* vector : {"workgroup_id", "num_workgroups", "local_invocation_id", "global_invocation_id"}) {
    if (name == vector) return "vec3<u32>";
  }
  for (const char* number : {"local_invocation_index", "subgroup_invocation_id", "subgroup_size"}) {
    if (name == number) return "u32";
  }
  return nullptr;
}

std::optional<KernelText> KernelText::read(KernelSource source, const Signature& signature) {
  KernelText text;
  text.label_ = std::move(source.label);
  text.wgsl_ = std::move(source.wgsl);
  text.entry_point_ = std::move(source.entry_point);
  if (signature.uniforms != 1 || !Reader(text).read() || text.storages_.size() != signature.bindings)
    return std::nullopt;
  return text;
}

std::vector<std::string> KernelText::builtins() const {
  std::vector<std::string> all = builtins_;
  for (const auto& needed : needs_) {
    if (!contains(all, needed)) all.push_back(needed);
  }
  std::erase(all, "global_invocation_id");
  return all;
}

bool KernelText::has_barriers() const {
  return wgsl_.find("Barrier(") != std::string::npos || wgsl_.find("workgroupUniformLoad(") != std::string::npos ||
         wgsl_.find("subgroup") != std::string::npos;
}

std::string KernelText::part(const std::string& prefix, const std::vector<Access>& storages,
                             const std::string& first_param) const {
  KernelText copy = *this;
  copy.storages_.clear();
  copy.directives_.clear();
  copy.builtins_.clear();
  copy.names_.clear();
  Reader reader(copy);
  reader.read();
  return reader.part(prefix, storages, first_param);
}

std::string KernelText::call(const std::string& prefix, const std::string& begin, const std::string& count) const {
  std::string arguments;
  for (const auto& builtin : builtins_) {
    if (!arguments.empty()) arguments += ", ";
    if (builtin == "workgroup_id") {
      arguments += "vec3<u32>(workgroup_id.x - " + begin + ", 0u, 0u)";
    } else if (builtin == "global_invocation_id") {
      arguments +=
          "vec3<u32>((workgroup_id.x - " + begin + ") * " + workgroup_size_ + "u + local_invocation_index, 0u, 0u)";
    } else if (builtin == "num_workgroups") {
      arguments += "vec3<u32>(" + count + ", 1u, 1u)";
    } else {
      arguments += builtin;
    }
  }
  return prefix + entry_point_ + "(" + arguments + ")";
}

}  // namespace torch_webgpu
