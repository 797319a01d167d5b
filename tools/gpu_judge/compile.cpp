// Compiles WGSL files for the adapter of the Vulkan driver, and says after each what became of it. The driver itself
// prints what it makes of them: gpu_compile LIBRARY FILE...
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <string>

#include "runtime/device.h"

using namespace torch_webgpu;

namespace {

std::optional<std::string> compile(const Device& device, const std::string& text) {
  const Api& api = device.api;
  return device.failure_of(WGPUErrorFilter_Validation, [&] {
    WGPUShaderSourceWGSL wgsl{};
    wgsl.chain.sType = WGPUSType_ShaderSourceWGSL;
    wgsl.code = to_view(text);
    WGPUShaderModuleDescriptor module_descriptor{};
    module_descriptor.nextInChain = &wgsl.chain;
    auto* module = api.DeviceCreateShaderModule(device.handle, &module_descriptor);
    WGPUComputePipelineDescriptor descriptor{};
    descriptor.compute.module = module;
    descriptor.compute.entryPoint = to_view("main");
    api.DeviceCreateComputePipeline(device.handle, &descriptor);
    api.ShaderModuleRelease(module);
  });
}

}  // namespace

int main(int count, char** arguments) try {
  DeviceOptions options;
  options.runtime = "dawn";
  options.dawn_paths = {arguments[1]};
  const Device& device = *new Device(Adapter::find(options));  // never closed: the driver has nothing to take down
  std::fprintf(stderr, "adapter: %s\n", device.info.name.c_str());
  for (int i = 2; i < count; ++i) {
    std::ifstream file(arguments[i]);
    const auto failure = compile(device, {std::istreambuf_iterator<char>(file), {}});
    std::fprintf(stderr, "compiled: %s %s\n", arguments[i], failure ? failure->c_str() : "");
  }
  std::_Exit(0);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  std::_Exit(1);
}
