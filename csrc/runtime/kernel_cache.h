// Compiled kernels by exact key: the only cache of pipelines. Any thread may call it at any time.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "runtime/device.h"
#include "runtime/worker_threads.h"

namespace torch_webgpu {

constexpr uint32_t kMaxBindings = 32;  // storage buffers in group 0, where the adapter binds as many
constexpr uint32_t kMaxUniforms = 8;   // uniform buffers in group 1

// The buffers that a kernel binds.
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

// The text of a kernel and its name; a launch prints it only when the cache misses.
struct KernelSource {
  std::string label;  // names the op and its dtypes in errors and profiles
  std::string wgsl;
  std::string entry_point = "main";
};

// Shared by the cache, the launches that wait for it, and the tapes that replay it: these may outlive its place in the
// cache.
class Kernel {
 public:
  Kernel(const Api& api, const KernelKey& key, const Signature& signature, KernelSource source,
         const std::string* label, uint64_t id);
  ~Kernel();
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  bool is_compiled() const { return state_.load(std::memory_order_acquire) == State::compiled; }
  bool has_failed() const { return state_.load(std::memory_order_acquire) == State::failed; }
  bool is_done() const { return state_.load(std::memory_order_acquire) >= State::compiled; }

  WGPUComputePipeline pipeline() const { return pipeline_; }  // once it is compiled
  const std::string& failure() const { return failure_; }     // once it has failed

  const Signature signature;
  const std::string* const label;  // lives as long as the process
  const uint64_t id;               // never reused, unlike the address and the handle of one that was evicted
  const uint64_t size_bytes;       // estimated

 private:
  friend class KernelCache;
  enum class State : uint32_t { waiting, compiling, compiled, failed };

  const Api& api_;
  const KernelKey key_;
  KernelSource source_;  // until it is compiled
  WGPUComputePipeline pipeline_ = nullptr;
  std::string failure_;
  std::atomic<State> state_{State::waiting};
  uint64_t last_used_ = 0;
};

// Bounded by number and by memory: past either bound the kernels that were used longest ago go, until half is left.
//
// Worker threads compile missing kernels, several at once.
class KernelCache {
 public:
  explicit KernelCache(Device& device, uint32_t capacity = 8192, uint32_t capacity_mib = 1024);

  // The memory that a driver keeps for a kernel. WebGPU does not report it; it grows with the text.
  static uint64_t estimated_bytes(const KernelSource& source);

  // The kernel, which may still have to be compiled. `print` is called on a miss only, without the cache's lock.
  template <class Print>
  std::shared_ptr<Kernel> get(const KernelKey& key, const Signature& signature, const Print& print) {
    if (auto kernel = find(key)) [[likely]]
      return kernel;
    return insert(key, signature, print());
  }
  // Compiles a kernel that no thread has begun.
  void compile(Kernel& kernel);
  // Returns when the kernel is compiled or has failed; compiles it here if no thread has begun.
  void finish(Kernel& kernel);

  WGPUBindGroupLayout storage_layout(uint32_t count, uint32_t read_only) {
    if (read_only == 0) [[likely]]
      return storage_layouts_[count];
    return read_only_layout(count, read_only);
  }
  WGPUBindGroupLayout params_layout() const { return uniform_layouts_[1]; }
  WGPUBindGroupLayout uniform_layout(uint32_t uniforms) const { return uniform_layouts_[uniforms]; }
  size_t size() const;
  uint64_t size_bytes() const;
  uint64_t compiled() const;  // or given to be compiled

 private:
  std::shared_ptr<Kernel> find(const KernelKey& key) {
    const std::lock_guard guard(mutex_);
    const auto found = kernels_.find(key);
    if (found == kernels_.end()) [[unlikely]]
      return nullptr;
    found->second->last_used_ = ++tick_;
    return found->second;
  }
  std::shared_ptr<Kernel> insert(const KernelKey& key, const Signature& signature, KernelSource source);
  void remove(const Kernel& kernel);
  WGPUComputePipeline make_pipeline(const KernelSource& source, const Signature& signature);
  WGPUBindGroupLayout make_storage_layout(uint32_t count, uint32_t read_only) const;
  WGPUBindGroupLayout read_only_layout(uint32_t count, uint32_t read_only);
  WGPUPipelineLayout make_pipeline_layout(const Signature& signature);
  uint64_t bytes_held() const;
  void evict();

  Device& device_;
  const uint32_t capacity_, capacity_mib_;
  const uint32_t delay_ms_;  // added to each compilation, so that tests see what happens meanwhile
  std::array<WGPUBindGroupLayout, kMaxBindings + 1> storage_layouts_{};
  std::array<WGPUPipelineLayout, kMaxBindings + 1> pipeline_layouts_{};
  std::array<WGPUBindGroupLayout, kMaxUniforms + 1> uniform_layouts_{};
  mutable std::mutex mutex_;  // guards the members below; never held while a kernel is printed or compiled
  uint64_t tick_ = 0, begun_ = 0;
  std::unordered_map<uint64_t, WGPUBindGroupLayout> read_only_layouts_;  // by count and bits
  std::unordered_set<std::string> labels_;
  std::unordered_map<KernelKey, std::shared_ptr<Kernel>, KernelKeyHash> kernels_;
  WorkerThreads workers_;  // the last member: stops before the others go
};

}  // namespace torch_webgpu
