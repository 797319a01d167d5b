#include "runtime/fused_text.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

namespace torch_webgpu {
namespace {

constexpr uint64_t kFamily = 40;  // in the first word of a key

void add_new(std::vector<std::string>& all, const std::vector<std::string>& some) {
  for (const auto& one : some) {
    if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(one);
  }
}

}  // namespace

void FusedText::bind(const std::string& type, bool is_written) {
  const size_t binding = bindings_++;
  storages_ += "@group(0) @binding(" + std::to_string(binding) + ") var<storage, " +
               (is_written ? "read_write" : "read") + "> " + array_name(binding) + ": " + type + ";\n";
}

void FusedText::add(const KernelText& text, const std::string& part, const std::string& end, const std::string& call) {
  if (label_.find(text.label()) == std::string::npos) label_ += (label_.empty() ? "" : " | ") + text.label();
  texts_ += part + "\n";
  add_new(directives_, text.directives());
  add_new(builtins_, text.builtins());
  calls_.push_back({end, call});
}

KernelSource FusedText::source(const std::string& workgroup_size, uint32_t param_vectors) const {
  KernelSource source;
  source.label = label_;
  for (const auto& directive : directives_) source.wgsl += directive + "\n";
  source.wgsl += storages_ + "@group(1) @binding(0) var<uniform> " + KernelText::kParams + ": array<vec4<u32>, " +
                 std::to_string(param_vectors) + ">;\n" + texts_ + "@compute @workgroup_size(" + workgroup_size +
                 ")\nfn main(";
  for (const auto& builtin : builtins_) {
    source.wgsl += "@builtin(" + builtin + ") " + builtin + ": " + KernelText::type_of_builtin(builtin) + ", ";
  }
  source.wgsl += ") {\n  ";
  for (const Call& call : calls_) {
    const bool is_last = &call == &calls_.back();
    source.wgsl += (is_last ? "{" : "if (workgroup_id.x < " + call.end + ") {") + "\n    " + call.text + ";\n  }" +
                   (is_last ? "\n" : " else ");
  }
  source.wgsl += "}\n";
  return source;
}

KernelKey key_of_fused(const std::string& name) {
  static std::mutex mutex;
  static auto* numbers = new std::unordered_map<std::string, uint64_t>;
  const std::lock_guard lock(mutex);
  KernelKey key;
  key.words = {kFamily, numbers->emplace(name, numbers->size() + 1).first->second, 0, 0};
  return key;
}

}  // namespace torch_webgpu
