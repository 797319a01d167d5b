#include "runtime/kernel_cache.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <vector>

#include "runtime/error.h"

namespace torch_webgpu {

KernelCache::KernelCache(Device& device, uint32_t capacity, uint32_t capacity_mib)
    : device_(device), capacity_(capacity), capacity_mib_(capacity_mib) {
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

const Kernel& KernelCache::insert(const KernelKey& key, const Signature& signature, KernelSource source) {
  auto* pipeline = compile(source, signature);
  const uint64_t bytes = estimated_bytes(source);
  if (kernels_.size() >= capacity_ || size_bytes() + bytes > uint64_t{capacity_mib_} << 20) evict();
  auto kernel = std::make_shared<Kernel>(device_.api, pipeline, signature,
                                         &*labels_.insert(std::move(source.label)).first, compiled_, bytes);
  kernel->last_used = ++tick_;
  return *(kernels_[key] = std::move(kernel));
}

// A guess in the range by which processes were seen to grow on llvmpipe, 0.5 to 0.9 MB for each kernel.
uint64_t KernelCache::estimated_bytes(const KernelSource& source) {
  constexpr uint64_t kPerKernel = uint64_t{400} << 10, kPerCharacter = 64;
  return kPerKernel + kPerCharacter * source.wgsl.size();
}

// Checked before it is ever submitted: an invalid pipeline computes nothing on Dawn and ends the process on
// wgpu-native.
WGPUComputePipeline KernelCache::compile(const KernelSource& source, const Signature& signature) {
  if (signature.bindings > kMaxBindings || !pipeline_layouts_[signature.bindings]) {
    throw Error("webgpu: " + source.label + " needs " + std::to_string(signature.bindings) + " buffers, and " +
                device_.info.name + " binds at most " + std::to_string(device_.limits.maxStorageBuffersPerShaderStage));
  }
  const Api& api = device_.api;
  if (const char* dump = std::getenv("TORCH_WEBGPU_DUMP")) {
    std::ofstream(dump, std::ios::app) << "// " << source.label << "\n" << source.wgsl << "\n";
  }
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
  ++compiled_;
  if (failure) {
    if (pipeline) api.ComputePipelineRelease(pipeline);
    throw Error("webgpu: the kernel of " + source.label + " does not compile: " + *failure);
  }
  return pipeline;
}

uint64_t KernelCache::size_bytes() const {
  uint64_t bytes = 0;
  for (const auto& [key, kernel] : kernels_) bytes += kernel->size_bytes;
  return bytes;
}

void KernelCache::evict() {
  std::vector<const Kernel*> by_age;
  by_age.reserve(kernels_.size());
  for (const auto& [key, kernel] : kernels_) by_age.push_back(kernel.get());
  std::sort(by_age.begin(), by_age.end(), [](const Kernel* a, const Kernel* b) { return a->last_used < b->last_used; });
  size_t left = kernels_.size();
  uint64_t bytes_left = size_bytes(), newest_evicted = 0;
  for (const Kernel* kernel : by_age) {
    if (left <= capacity_ / 2 && bytes_left <= uint64_t{capacity_mib_} << 19) break;
    newest_evicted = kernel->last_used;
    bytes_left -= kernel->size_bytes;
    --left;
  }
  std::erase_if(kernels_, [&](const auto& entry) { return entry.second->last_used <= newest_evicted; });
}

}  // namespace torch_webgpu
