// A kernel's WGSL, read as far as it takes to put several kernels into one.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/kernel_cache.h"

namespace torch_webgpu {

class KernelText {
 public:
  // None for a kernel that cannot become a part of another one: it has several entry points or uniforms, or builtin
  // values that a part cannot have.
  static std::optional<KernelText> read(KernelSource source, const Signature& signature);

  struct Storage {
    std::string name, type;
    bool is_written = false;  // or may be: its address is taken
    bool is_indexed = true;   // every use names an element
  };
  const std::vector<Storage>& storages() const { return storages_; }  // by binding
  const std::vector<std::string>& directives() const { return directives_; }
  std::vector<std::string> builtins() const;  // that call() passes on
  const std::string& workgroup_size() const { return workgroup_size_; }
  const std::string& label() const { return label_; }
  // Whether lanes wait for one another: then what they do may depend on constants and parameters alone.
  bool has_barriers() const;

  // How a part reaches a storage.
  struct Access {
    std::string array;
    std::string base = {};  // added to every index
    std::string load = {};  // the function of an index that gives an element which is only read
  };
  // The text as a part of a kernel that has `kParams` as its uniform, of which these parameters begin at a vec4. The
  // names that the text declares get a prefix.
  std::string part(const std::string& prefix, const std::vector<Access>& storages,
                   const std::string& first_param) const;
  // Calls what was the entry point for a workgroup of `count`, the first of which has the number `begin`.
  std::string call(const std::string& prefix, const std::string& begin, const std::string& count) const;

  static constexpr const char* kParams = "all_params";
  static const char* type_of_builtin(std::string_view name);  // null for one that a part cannot take

 private:
  class Reader;
  std::string label_, wgsl_, entry_point_, params_, workgroup_size_;
  std::vector<std::string> directives_, builtins_, needs_, names_;
  std::vector<Storage> storages_;
};

}  // namespace torch_webgpu
