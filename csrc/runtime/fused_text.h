// The text of a kernel made of several, whose workgroups are shared out among them.
#pragma once
#include <string>
#include <vector>

#include "runtime/kernel_text.h"

namespace torch_webgpu {

class FusedText {
 public:
  // The next binding, declared as an array of `type`.
  void bind(const std::string& type, bool is_written);
  static std::string array_name(size_t binding) { return "bound" + std::to_string(binding); }

  // Adds `part`, which is `text` under other names, and its call: for the workgroups before `end` that no earlier part
  // takes.
  void add(const KernelText& text, const std::string& part, const std::string& end, const std::string& call);

  KernelSource source(const std::string& workgroup_size, uint32_t param_vectors) const;

 private:
  struct Call {
    std::string end, text;
  };
  std::string label_, storages_, texts_;
  std::vector<std::string> directives_, builtins_{"workgroup_id"};
  std::vector<Call> calls_;
  size_t bindings_ = 0;
};

// The vectors of the uniform that so many words of parameters take.
inline uint32_t vectors_of(uint32_t words) { return (words + 3) / 4; }

// Kernels of equal names are one kernel.
KernelKey key_of_fused(const std::string& name);

}  // namespace torch_webgpu
