#include "runtime/kernel_cache.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <vector>

#include "runtime/error.h"

namespace torch_webgpu {

KernelCache::KernelCache(Device& device, size_t capacity) : device_(device), capacity_(capacity) {
  const Api& api = device_.api;
  WGPUBindGroupLayoutEntry params{};
  params.visibility = WGPUShaderStage_Compute;
  params.buffer.type = WGPUBufferBindingType_Uniform;
  WGPUBindGroupLayoutDescriptor params_descriptor{};
  params_descriptor.entryCount = 1;
  params_descriptor.entries = &params;
  params_layout_ = api.DeviceCreateBindGroupLayout(device_.handle, &params_descriptor);

  const uint32_t most = std::min(kMaxBindings, device_.limits.maxStorageBuffersPerShaderStage);
  std::array<WGPUBindGroupLayoutEntry, kMaxBindings> entries{};
  for (uint32_t count = 0; count <= most; ++count) {
    if (count > 0) {
      entries[count - 1].binding = count - 1;
      entries[count - 1].visibility = WGPUShaderStage_Compute;
      entries[count - 1].buffer.type = WGPUBufferBindingType_Storage;
    }
    WGPUBindGroupLayoutDescriptor descriptor{};
    descriptor.entryCount = count;
    descriptor.entries = entries.data();
    storage_layouts_[count] = api.DeviceCreateBindGroupLayout(device_.handle, &descriptor);
    const WGPUBindGroupLayout groups[] = {storage_layouts_[count], params_layout_};
    WGPUPipelineLayoutDescriptor pipeline{};
    pipeline.bindGroupLayoutCount = 2;
    pipeline.bindGroupLayouts = groups;
    pipeline_layouts_[count] = api.DeviceCreatePipelineLayout(device_.handle, &pipeline);
  }
}

const Kernel& KernelCache::insert(const KernelKey& key, uint32_t binding_count, KernelSource source) {
  auto* pipeline = compile(source, binding_count);
  if (kernels_.size() >= capacity_) evict();
  auto kernel = std::make_unique<Kernel>(Kernel{pipeline, &*labels_.insert(std::move(source.label)).first, ++tick_});
  return *(kernels_[key] = std::move(kernel));
}

// Checked before it is ever submitted: an invalid pipeline computes nothing on Dawn and ends the process on
// wgpu-native.
WGPUComputePipeline KernelCache::compile(const KernelSource& source, uint32_t binding_count) {
  if (!pipeline_layouts_[binding_count]) {
    throw Error("webgpu: " + source.label + " needs " + std::to_string(binding_count) + " buffers, and " +
                device_.info.name + " binds at most " + std::to_string(device_.limits.maxStorageBuffersPerShaderStage));
  }
  const Api& api = device_.api;
  if (const char* dump = std::getenv("TORCH_WEBGPU_DUMP")) {
    std::ofstream(dump, std::ios::app) << "// " << source.label << "\n" << source.wgsl << "\n";
  }
  WGPUComputePipeline pipeline = nullptr;
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
    descriptor.layout = pipeline_layouts_[binding_count];
    descriptor.compute.module = module;
    descriptor.compute.entryPoint = to_view("main");
    pipeline = api.DeviceCreateComputePipeline(device_.handle, &descriptor);
    api.ShaderModuleRelease(module);
  });
  ++compiled_;
  if (failure) {
    if (pipeline) api.ComputePipelineRelease(pipeline);
    throw Error("webgpu: the kernel of " + source.label + " does not compile: " + *failure);
  }
  return pipeline;
}

void KernelCache::evict() {
  std::vector<uint64_t> ages;
  ages.reserve(kernels_.size());
  for (const auto& [key, kernel] : kernels_) ages.push_back(kernel->last_used);
  std::nth_element(ages.begin(), ages.begin() + static_cast<std::ptrdiff_t>(ages.size() / 2), ages.end());
  const uint64_t median = ages[ages.size() / 2];
  std::erase_if(kernels_, [&](const auto& entry) {
    if (entry.second->last_used > median) return false;
    device_.api.ComputePipelineRelease(entry.second->pipeline);
    return true;
  });
}

}  // namespace torch_webgpu
