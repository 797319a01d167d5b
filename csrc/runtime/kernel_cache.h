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

constexpr uint32_t kMaxBindings = 12;  // storage buffers in group 0

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
};

struct Kernel {
  WGPUComputePipeline pipeline = nullptr;
  const std::string* label = nullptr;  // lives as long as the process
  uint64_t last_used = 0;
};

class KernelCache {
 public:
  KernelCache(Device& device, size_t capacity = 8192);

  // `print` is called on a miss only. The caller holds the stream's lock.
  template <class Print>
  const Kernel& get(const KernelKey& key, uint32_t binding_count, const Print& print) {
    const auto found = kernels_.find(key);
    if (found != kernels_.end()) [[likely]] {
      found->second->last_used = ++tick_;
      return *found->second;
    }
    return insert(key, binding_count, print());
  }

  WGPUBindGroupLayout storage_layout(uint32_t binding_count) const { return storage_layouts_[binding_count]; }
  WGPUBindGroupLayout params_layout() const { return params_layout_; }
  size_t size() const { return kernels_.size(); }
  uint64_t compiled() const { return compiled_; }

 private:
  const Kernel& insert(const KernelKey& key, uint32_t binding_count, KernelSource source);
  WGPUComputePipeline compile(const KernelSource& source, uint32_t binding_count);
  void evict();

  Device& device_;
  const size_t capacity_;
  uint64_t tick_ = 0, compiled_ = 0;
  std::array<WGPUBindGroupLayout, kMaxBindings + 1> storage_layouts_{};
  std::array<WGPUPipelineLayout, kMaxBindings + 1> pipeline_layouts_{};
  WGPUBindGroupLayout params_layout_ = nullptr;
  std::unordered_set<std::string> labels_;
  std::unordered_map<KernelKey, std::unique_ptr<Kernel>, KernelKeyHash> kernels_;
};

}  // namespace torch_webgpu
