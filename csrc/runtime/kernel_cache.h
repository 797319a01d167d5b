// Compiled kernels by exact key: the only cache of pipelines.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "runtime/device.h"

namespace torch_webgpu {

constexpr uint32_t kMaxBindings = 32;  // storage buffers in group 0, where the adapter binds as many
constexpr uint32_t kMaxUniforms = 8;   // uniform buffers in group 1

// What a kernel binds.
struct Signature {
  uint32_t bindings = 0;   // storage buffers, in group 0
  uint32_t read_only = 0;  // a bit for each of them that the text declares `read`: these may alias one another
  uint32_t uniforms = 1;   // in group 1; each but the last takes one slot of 64 words
  bool operator==(const Signature&) const = default;
};

struct KernelKey {
  std::array<uint64_t, 4> words{};
  bool operator==(const KernelKey&) const = default;
};

struct KernelKeyHash {
  size_t operator()(const KernelKey& key) const {
    uint64_t hash = 0;
    for (const uint64_t word : key.words) {
      hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
      hash ^= hash >> 32;
    }
    return hash;
  }
};

// What a kernel is made from; only asked for on a miss.
struct KernelSource {
  std::string label;  // names the op and its dtypes in errors and profiles
  std::string wgsl;
  std::string entry_point = "main";
};

// Shared by the cache and the tapes that replay it, which may outlive its place in the cache.
struct Kernel : std::enable_shared_from_this<Kernel> {
  Kernel(const Api& api, WGPUComputePipeline pipeline, const Signature& signature, const std::string* label,
         uint64_t id, uint64_t size_bytes)
      : api(api), pipeline(pipeline), signature(signature), label(label), id(id), size_bytes(size_bytes) {}
  ~Kernel() { api.ComputePipelineRelease(pipeline); }
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  const Api& api;
  WGPUComputePipeline pipeline;
  const Signature signature;
  const std::string* label;   // lives as long as the process
  const uint64_t id;          // never reused, unlike the address and the handle of one that was evicted
  const uint64_t size_bytes;  // estimated
  uint64_t last_used = 0;
};

// Bounded by number and by memory: past either bound the kernels that were used longest ago go, until half is left.
class KernelCache {
 public:
  explicit KernelCache(Device& device, uint32_t capacity = 8192, uint32_t capacity_mib = 1024);

  // What a driver keeps of a kernel. WebGPU does not tell it; it grows with the text.
  static uint64_t estimated_bytes(const KernelSource& source);

  // `print` is called on a miss only. The caller holds the stream's lock.
  template <class Print>
  const Kernel& get(const KernelKey& key, const Signature& signature, const Print& print) {
    const auto found = kernels_.find(key);
    if (found != kernels_.end()) [[likely]] {
      found->second->last_used = ++tick_;
      return *found->second;
    }
    return insert(key, signature, print());
  }

  WGPUBindGroupLayout storage_layout(uint32_t count, uint32_t read_only) {
    if (read_only == 0) [[likely]]
      return storage_layouts_[count];
    return read_only_layout(count, read_only);
  }
  WGPUBindGroupLayout params_layout() const { return uniform_layouts_[1]; }
  WGPUBindGroupLayout uniform_layout(uint32_t uniforms) const { return uniform_layouts_[uniforms]; }
  size_t size() const { return kernels_.size(); }
  uint64_t size_bytes() const;
  uint64_t compiled() const { return compiled_; }

 private:
  const Kernel& insert(const KernelKey& key, const Signature& signature, KernelSource source);
  WGPUComputePipeline compile(const KernelSource& source, const Signature& signature);
  WGPUBindGroupLayout make_storage_layout(uint32_t count, uint32_t read_only) const;
  WGPUBindGroupLayout read_only_layout(uint32_t count, uint32_t read_only);
  WGPUPipelineLayout make_pipeline_layout(const Signature& signature);
  void evict();

  Device& device_;
  const uint32_t capacity_, capacity_mib_;
  uint64_t tick_ = 0, compiled_ = 0;
  std::array<WGPUBindGroupLayout, kMaxBindings + 1> storage_layouts_{};
  std::array<WGPUPipelineLayout, kMaxBindings + 1> pipeline_layouts_{};
  std::array<WGPUBindGroupLayout, kMaxUniforms + 1> uniform_layouts_{};
  std::unordered_map<uint64_t, WGPUBindGroupLayout> read_only_layouts_;  // by count and bits
  std::unordered_set<std::string> labels_;
  std::unordered_map<KernelKey, std::shared_ptr<Kernel>, KernelKeyHash> kernels_;
};

}  // namespace torch_webgpu
