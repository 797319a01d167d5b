// A complete shader: a printed head (bindings, parameters, constants) and plain .wgsl files behind it.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "shader/dtype.h"

namespace torch_webgpu {

// The traits of the adapter that printers need.
struct Target {
  uint32_t workgroup = 64;  // invocations per workgroup of a pointwise kernel
  uint32_t subgroup = 0;    // exact size of a subgroup, 0 where it varies or there are none
  bool subgroup_directive = false;
  bool software = false;
  uint32_t page_bytes = 1u << 27;  // bytes per binding of an array that takes several bindings; a multiple of 256
};

// How many bindings hold each of a kernel's arrays: one, or several where the array is larger than a binding may be.
struct Pages {
  uint64_t more = 0;  // 4 bits per array: its bindings beyond the first

  uint32_t count(uint32_t array) const { return 1 + (more >> (4 * array) & 15); }
  uint32_t first(uint32_t array) const {  // the number of its first binding
    uint32_t binding = array;
    for (uint32_t i = 0; i < array; ++i) binding += more >> (4 * i) & 15;
    return binding;
  }
};

class ShaderSource {
 public:
  explicit ShaderSource(const Target& target, Pages pages = {}) : target_(target), pages_(pages) {}

  void use(std::string_view file);  // a file below wgsl/, once
  void use(Compute type);           // arithmetic, conversion and storage of a type
  void use(DType dtype);            // the same of the type that a dtype computes as, and its loads and stores
  void use_subgroups() { subgroups_ = true; }
  void take_param_words(uint32_t words) { param_words_ = words; }  // that a launch may pass
  void print(const std::string& text) { body_ += text; }
  // Array `index` of group 0, of u32, vec2<u32>, vec4<u32> or atomic<u32>, named m<index>. Where it is in pages, each
  // has a binding, and functions reach its elements: fetch_m<index>(i) and put_m<index>(i, value), of atomic<u32> also
  // and_, or_, add_ and swap_m<index>(i, old, new).
  void bind(uint32_t index, std::string_view element);
  bool is_paged(uint32_t index) const { return pages_.count(index) > 1; }

  std::string text() const;

 private:
  void bind_pages(uint32_t index, const std::string& element);

  const Target& target_;
  const Pages pages_;
  bool subgroups_ = false;
  uint32_t param_words_ = 256;
  std::vector<std::string> files_;
  std::string head_, body_;
};

// A word of the launch's parameters, at a place known when printing.
std::string param(uint32_t word);
std::string param_value(Compute type,
                        uint32_t word);  // converted to a value; types of 8 or 16 bytes take several words

// Takes the innermost of several dimensions off a running index `rest`: declares `name` with `kind` (let or var), by
// one division, which is slow, and a product.
std::string take_dimension(const std::string& kind, const std::string& name, const std::string& size);

// A formula names functions without their type, `add(a, b)`: this gives them that of `type`, `add_i64(a, b)`, wherever
// the type's file, or that of `library`, defines one.
std::string specialise(std::string_view formula, Compute type, std::string_view library = {});

}  // namespace torch_webgpu
