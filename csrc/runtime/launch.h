// One dispatch as data: the kernel's key, how to print it on a miss, the buffers, the parameters and the grid.
#pragma once
#include <cstdint>

#include "runtime/bind_group_cache.h"
#include "runtime/kernel_cache.h"

namespace torch_webgpu {

constexpr uint32_t kParamWords = 256;  // 32-bit words that one launch may pass
constexpr uint32_t kNoWord = ~0u;

struct Launch {
  KernelKey key;
  KernelSource (*print)(const Launch&) = nullptr;
  const void* context = nullptr;  // what `print` needs beyond the key, such as the text of a kernel of one's own
  uint32_t grid[3] = {1, 1, 1};
  uint32_t binding_count = 0;
  uint32_t param_words = 0;
  uint32_t read_only = 0;  // see Signature
  uint32_t uniforms = 1;
  uint32_t random_word = kNoWord;  // the parameter where seed and counter begin, two words each: a replay renews them
  bool windowed = false;           // some binding has a size
  bool reports = false;            // binds status() and takes its reporter's number as the first parameter
  Binding bindings[kMaxBindings];
  uint32_t params[kParamWords];

  Signature signature() const { return {binding_count, read_only, uniforms}; }

  Launch() {}  // leaves the arrays as they are: every op makes one
};

}  // namespace torch_webgpu
