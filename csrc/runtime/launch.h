// One dispatch as data: the kernel's key, how to print it on a miss, the buffers, the parameters and the grid.
#pragma once
#include <cstdint>

#include "runtime/bind_group_cache.h"
#include "runtime/kernel_cache.h"

namespace torch_webgpu {

constexpr uint32_t kParamWords = 256;   // 32-bit words that one launch may pass
constexpr uint32_t kTableWords = 2048;  // that one may pass whose kernel declares so many: a table of many tensors
constexpr uint32_t kNoWord = ~0u;

// Where a run of random numbers begins.
struct RandomStart {
  uint64_t seed = 0, counter = 0;
};

// The arguments of a dispatch beside its kernel. The pointers lead into a Launch, a tape or a deferred launch.
struct DispatchView {
  const Binding* bindings;
  const uint32_t* params;
  const uint32_t* grid;
  uint32_t param_words;
  bool windowed, reports;
  uint64_t bytes, flops;
};

struct Launch {
  KernelKey key;
  KernelSource (*print)(const Launch&) = nullptr;
  const void* context = nullptr;  // an argument of `print` beyond the key, such as the text of a user's kernel
  uint32_t grid[3] = {1, 1, 1};
  uint32_t binding_count = 0;
  uint32_t param_words = 0;
  uint32_t read_only = 0;  // see Signature
  uint32_t uniforms = 1;
  uint32_t random_word = kNoWord;  // the parameter where seed and counter begin, two words each: a replay renews them
  uint32_t random_source = 0;      // whose: the generator's, or those that Tape::add_random() gave this number
  uint64_t bytes = 0;              // that the operands span; 0 if unknown
  uint64_t flops = 0;              // floating-point operations, where they take longer than the bytes
  bool windowed = false;           // some binding has a size
  bool reports = false;            // binds status() and takes its reporter's number as the first parameter
  Binding bindings[kMaxBindings];
  uint32_t params[kTableWords];

  Signature signature() const { return {binding_count, read_only, uniforms}; }
  DispatchView view() const { return {bindings, params, grid, param_words, windowed, reports, bytes, flops}; }

  Launch() {}  // leaves the arrays as they are: every op makes one
};

}  // namespace torch_webgpu
