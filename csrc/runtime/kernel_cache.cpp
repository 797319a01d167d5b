#include "runtime/kernel_cache.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>
#include <vector>

#include "runtime/bindings.h"
#include "runtime/error.h"

namespace torch_webgpu {
namespace {

size_t worker_count() { return std::clamp<size_t>(std::thread::hardware_concurrency(), 1, 4); }

uint32_t delay_from_environment() {
  const char* milliseconds = std::getenv("TORCH_WEBGPU_TEST_COMPILE_MS");
  return milliseconds ? static_cast<uint32_t>(std::strtoul(milliseconds, nullptr, 10)) : 0;
}

}  // namespace

Kernel::Kernel(const Api& api, const KernelKey& key, const Signature& signature, KernelSource source,
               const std::string* label, uint64_t id)
    : signature(signature),
      label(label),
      id(id),
      size_bytes(KernelCache::estimated_bytes(source)),
      api_(api),
      key_(key),
      source_(std::move(source)) {}

Kernel::~Kernel() {
  if (pipeline_) api_.ComputePipelineRelease(pipeline_);
}

KernelCache::KernelCache(Device& device, uint32_t capacity, uint32_t capacity_mib)
    : device_(device),
      capacity_(capacity),
      capacity_mib_(capacity_mib),
      delay_ms_(delay_from_environment()),
      workers_(worker_count()) {
  const Api& api = device_.api;
  std::array<WGPUBindGroupLayoutEntry, kMaxUniforms> uniforms{};
  for (uint32_t count = 0; count <= kMaxUniforms; ++count) {
    if (count > 0) {
      uniforms[count - 1].binding = count - 1;
      uniforms[count - 1].visibility = WGPUShaderStage_Compute;
      uniforms[count - 1].buffer.type = WGPUBufferBindingType_Uniform;
    }
    WGPUBindGroupLayoutDescriptor descriptor{};
    descriptor.entryCount = count;
    descriptor.entries = uniforms.data();
    uniform_layouts_[count] = api.DeviceCreateBindGroupLayout(device_.handle, &descriptor);
  }

  const uint32_t most = std::min(kMaxBindings, device_.limits.maxStorageBuffersPerShaderStage);
  for (uint32_t count = 1; count <= most; ++count) {
    storage_layouts_[count] = make_storage_layout(count, 0);
    pipeline_layouts_[count] = make_pipeline_layout({count, 0, 1});
  }
}

WGPUBindGroupLayout KernelCache::make_storage_layout(uint32_t count, uint32_t read_only) const {
  std::array<WGPUBindGroupLayoutEntry, kMaxBindings> entries{};
  for (uint32_t i = 0; i < count; ++i) {
    entries[i].binding = i;
    entries[i].visibility = WGPUShaderStage_Compute;
    entries[i].buffer.type = read_only >> i & 1 ? WGPUBufferBindingType_ReadOnlyStorage : WGPUBufferBindingType_Storage;
  }
  WGPUBindGroupLayoutDescriptor descriptor{};
  descriptor.entryCount = count;
  descriptor.entries = entries.data();
  return device_.api.DeviceCreateBindGroupLayout(device_.handle, &descriptor);
}

WGPUBindGroupLayout KernelCache::read_only_layout(uint32_t count, uint32_t read_only) {
  const std::lock_guard guard(mutex_);
  auto& layout = read_only_layouts_[uint64_t{count} << 32 | read_only];
  if (!layout) layout = make_storage_layout(count, read_only);
  return layout;
}

WGPUPipelineLayout KernelCache::make_pipeline_layout(const Signature& signature) {
  const WGPUBindGroupLayout groups[] = {storage_layout(signature.bindings, signature.read_only),
                                        uniform_layouts_[signature.uniforms]};
  WGPUPipelineLayoutDescriptor descriptor{};
  descriptor.bindGroupLayoutCount = 2;
  descriptor.bindGroupLayouts = groups;
  return device_.api.DeviceCreatePipelineLayout(device_.handle, &descriptor);
}

// Two threads may have printed the same kernel: the one that comes second takes the first one's.
std::shared_ptr<Kernel> KernelCache::insert(const KernelKey& key, const Signature& signature, KernelSource source) {
  std::shared_ptr<Kernel> kernel;
  {
    const std::lock_guard guard(mutex_);
    const auto found = kernels_.find(key);
    if (found != kernels_.end()) return found->second;
    if (const char* dump = std::getenv("TORCH_WEBGPU_DUMP")) {
      std::ofstream(dump, std::ios::app) << "// " << source.label << "\n" << source.wgsl << "\n";
    }
    const uint64_t bytes = estimated_bytes(source);
    if (kernels_.size() >= capacity_ || bytes_held() + bytes > uint64_t{capacity_mib_} << 20) evict();
    const std::string* label = &*labels_.insert(source.label).first;
    Signature bound = signature;
    bound.read_only |= declared_read_only(source.wgsl);
    kernel = std::make_shared<Kernel>(device_.api, key, bound, std::move(source), label, ++begun_);
    kernel->last_used_ = ++tick_;
    kernels_.emplace(key, kernel);
  }
  workers_.run([this, kernel] { compile(*kernel); });
  return kernel;
}

void KernelCache::compile(Kernel& kernel) {
  auto state = Kernel::State::waiting;
  if (!kernel.state_.compare_exchange_strong(state, Kernel::State::compiling)) return;
  try {
    const KernelSource source = std::move(kernel.source_);
    kernel.pipeline_ = make_pipeline(source, kernel.signature);
    state = Kernel::State::compiled;
  } catch (const std::exception& error) {
    kernel.failure_ = error.what();
    remove(kernel);
    state = Kernel::State::failed;
  }
  kernel.state_.store(state, std::memory_order_release);
  kernel.state_.notify_all();
}

void KernelCache::finish(Kernel& kernel) {
  compile(kernel);
  kernel.state_.wait(Kernel::State::compiling, std::memory_order_acquire);
}

// The next launch tries again.
void KernelCache::remove(const Kernel& kernel) {
  const std::lock_guard guard(mutex_);
  const auto found = kernels_.find(kernel.key_);
  if (found != kernels_.end() && found->second.get() == &kernel) kernels_.erase(found);
}

// A guess in the range by which processes were seen to grow on llvmpipe, 0.5 to 0.9 MB for each kernel.
uint64_t KernelCache::estimated_bytes(const KernelSource& source) {
  constexpr uint64_t kPerKernel = uint64_t{400} << 10, kPerCharacter = 64;
  return kPerKernel + kPerCharacter * source.wgsl.size();
}

// Checked before it is ever submitted: an invalid pipeline computes nothing on Dawn and ends the process on
// wgpu-native.
WGPUComputePipeline KernelCache::make_pipeline(const KernelSource& source, const Signature& signature) {
  if (signature.bindings > kMaxBindings || !pipeline_layouts_[signature.bindings]) {
    throw Error("webgpu: " + source.label + " needs " + std::to_string(signature.bindings) + " buffers, and " +
                device_.info.name + " binds at most " + std::to_string(device_.limits.maxStorageBuffersPerShaderStage));
  }
  const Api& api = device_.api;
  if (delay_ms_ > 0) std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms_));
  WGPUComputePipeline pipeline = nullptr;
  const bool common = signature == Signature{signature.bindings, 0, 1};
  auto* const layout = common ? pipeline_layouts_[signature.bindings] : make_pipeline_layout(signature);
  const auto failure = device_.failure_of(WGPUErrorFilter_Validation, [&] {
    WGPUShaderSourceWGSL wgsl{};
    wgsl.chain.sType = WGPUSType_ShaderSourceWGSL;
    wgsl.code = to_view(source.wgsl);
    WGPUShaderModuleDescriptor module_descriptor{};
    module_descriptor.nextInChain = &wgsl.chain;
    module_descriptor.label = to_view(source.label);
    auto* module = api.DeviceCreateShaderModule(device_.handle, &module_descriptor);
    WGPUComputePipelineDescriptor descriptor{};
    descriptor.label = to_view(source.label);
    descriptor.layout = layout;
    descriptor.compute.module = module;
    descriptor.compute.entryPoint = to_view(source.entry_point);
    pipeline = api.DeviceCreateComputePipeline(device_.handle, &descriptor);
    api.ShaderModuleRelease(module);
  });
  if (!common) api.PipelineLayoutRelease(layout);
  if (failure) {
    if (pipeline) api.ComputePipelineRelease(pipeline);
    throw Error("webgpu: the kernel of " + source.label + " does not compile: " + *failure);
  }
  return pipeline;
}

size_t KernelCache::size() const {
  const std::lock_guard guard(mutex_);
  return kernels_.size();
}

uint64_t KernelCache::compiled() const {
  const std::lock_guard guard(mutex_);
  return begun_;
}

uint64_t KernelCache::size_bytes() const {
  const std::lock_guard guard(mutex_);
  return bytes_held();
}

uint64_t KernelCache::bytes_held() const {
  uint64_t bytes = 0;
  for (const auto& [key, kernel] : kernels_) bytes += kernel->size_bytes;
  return bytes;
}

void KernelCache::evict() {
  std::vector<const Kernel*> by_age;
  by_age.reserve(kernels_.size());
  for (const auto& [key, kernel] : kernels_) by_age.push_back(kernel.get());
  std::sort(by_age.begin(), by_age.end(),
            [](const Kernel* a, const Kernel* b) { return a->last_used_ < b->last_used_; });
  size_t left = kernels_.size();
  uint64_t bytes_left = bytes_held(), newest_evicted = 0;
  for (const Kernel* kernel : by_age) {
    if (left <= capacity_ / 2 && bytes_left <= uint64_t{capacity_mib_} << 19) break;
    newest_evicted = kernel->last_used_;
    bytes_left -= kernel->size_bytes;
    --left;
  }
  std::erase_if(kernels_, [&](const auto& entry) { return entry.second->last_used_ <= newest_evicted; });
}

}  // namespace torch_webgpu
