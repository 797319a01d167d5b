// Shared by the launchers of all families: the adapter's traits for printers, keys, grids, scalars as words.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>

#include <cstring>

#include "families/tensor.h"
#include "runtime/stream.h"
#include "shader/dtype.h"
#include "shader/source.h"

namespace torch_webgpu {

// The first word of a key tells families apart.
enum class Family : uint64_t {
  pointwise = 1,
  reduce,
  matmul,
  join,
  softmax = 16,
  selection,
  convolution = 20,
  norm = 22,
  attention = 24,
  recurrent = 26,
  factorization = 28,
  indexed = 32,
  custom = 34,
  program = 100
};

const Target& target();
// The most that one binding holds. TORCH_WEBGPU_TEST_BINDING_BYTES lowers it, so that small tensors are split too.
uint64_t max_binding_bytes();
// The floating-point operations of the longest launch: about 0.1 s of a slow GPU of the adapter's type. Systems reset a
// GPU that does not answer for a second or two. TORCH_WEBGPU_TEST_FLOPS lowers it for tests.
uint64_t most_flops();

// Splits `steps` over workgroups that each loop over a chunk: few fat ones on a software adapter, many on a GPU.
struct Chunks {
  uint32_t groups, chunk;
};
Chunks chunks_of(uint64_t steps, uint32_t workgroup);

// As the compute type's words, one, two or four.
void write_scalar(uint32_t* words, Compute type, const c10::Scalar& value);

// The index of `buffer` among the launch's bindings: a buffer is bound once, however many operands are in it.
inline uint32_t bind(Launch& launch, const Buffer* buffer) {
  for (uint32_t i = 0; i < launch.binding_count; ++i) {
    if (launch.bindings[i].buffer == buffer) return i;
  }
  launch.bindings[launch.binding_count] = {buffer, 0, 0};
  return launch.binding_count++;
}

template <class Spec>
void set_key(Launch& launch, Family family, const Spec& spec) {
  static_assert(sizeof(Spec) <= 24 && std::is_trivially_copyable_v<Spec>);
  const uint64_t pages = launch.key.words[0] & ~uint64_t{255};  // see pages_of
  launch.key.words = {static_cast<uint64_t>(family) | pages};
  std::memcpy(&launch.key.words[1], &spec, sizeof(Spec));
}

// How many bindings hold each array of the kernel, as bind_pages (families/windows.h) leaves it above the family.
inline Pages pages_of(const Launch& launch) { return {launch.key.words[0] >> 8}; }

template <class Spec>
Spec spec_of(const Launch& launch) {
  Spec spec;
  std::memcpy(&spec, &launch.key.words[1], sizeof(Spec));
  return spec;
}

}  // namespace torch_webgpu
