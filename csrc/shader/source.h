// A complete shader: a printed head (bindings, parameters, constants) and plain .wgsl files behind it.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "shader/dtype.h"

namespace torch_webgpu {

// What a printer must know of the adapter.
struct Target {
  uint32_t workgroup = 64;  // invocations per workgroup of a pointwise kernel
  uint32_t subgroup = 0;    // exact size of a subgroup, 0 where it varies or there are none
  bool subgroup_directive = false;
  bool software = false;
};

class ShaderSource {
 public:
  explicit ShaderSource(const Target& target) : target_(target) {}

  void use(std::string_view file);  // a file below wgsl/, once
  void use(Compute type);           // arithmetic, conversion and storage of a type
  void use(DType dtype);            // the same of the type that a dtype computes as, and its loads and stores
  void use_subgroups() { subgroups_ = true; }
  void print(const std::string& text) { body_ += text; }
  // Binding `index` of group 0, as an array of u32, vec2<u32>, vec4<u32> or atomic<u32>, named m<index>.
  void bind(uint32_t index, std::string_view element);

  std::string text() const;

 private:
  const Target& target_;
  bool subgroups_ = false;
  std::vector<std::string> files_;
  std::string head_, body_;
};

// A word of the launch's parameters, at a place known when printing.
std::string param(uint32_t word);
std::string param_value(Compute type, uint32_t word);  // as a value; a type of 8 or 16 bytes takes several

// Takes the innermost of several dimensions off a running index `rest`: declares `name` with `kind` (let or var), by
// one division, which is slow, and a product.
std::string take_dimension(const std::string& kind, const std::string& name, const std::string& size);

// A formula names functions without their type, `add(a, b)`: this gives them that of `type`, `add_i64(a, b)`, wherever
// the type's file, or that of `library`, defines one.
std::string specialise(std::string_view formula, Compute type, std::string_view library = {});

}  // namespace torch_webgpu
