// A WebGPU library, opened at run time, as a table of functions.
#pragma once
#include <webgpu.h>
#include <wgpu.h>

#include <string>
#include <string_view>

namespace torch_webgpu {

#define TORCH_WEBGPU_FUNCTIONS(X)         \
  X(CreateInstance)                       \
  X(InstanceRequestAdapter)               \
  X(InstanceProcessEvents)                \
  X(InstanceRelease)                      \
  X(AdapterGetFeatures)                   \
  X(AdapterGetInfo)                       \
  X(AdapterGetLimits)                     \
  X(AdapterRelease)                       \
  X(AdapterRequestDevice)                 \
  X(BindGroupRelease)                     \
  X(BufferDestroy)                        \
  X(BufferGetConstMappedRange)            \
  X(BufferMapAsync)                       \
  X(BufferRelease)                        \
  X(BufferUnmap)                          \
  X(CommandBufferRelease)                 \
  X(CommandEncoderBeginComputePass)       \
  X(CommandEncoderCopyBufferToBuffer)     \
  X(CommandEncoderFinish)                 \
  X(CommandEncoderRelease)                \
  X(CommandEncoderResolveQuerySet)        \
  X(ComputePassEncoderDispatchWorkgroups) \
  X(ComputePassEncoderEnd)                \
  X(ComputePassEncoderRelease)            \
  X(ComputePassEncoderSetBindGroup)       \
  X(ComputePassEncoderSetPipeline)        \
  X(ComputePipelineRelease)               \
  X(DeviceCreateBindGroup)                \
  X(DeviceCreateBindGroupLayout)          \
  X(DeviceCreateBuffer)                   \
  X(DeviceCreateCommandEncoder)           \
  X(DeviceCreateComputePipeline)          \
  X(DeviceCreatePipelineLayout)           \
  X(DeviceCreateQuerySet)                 \
  X(DeviceCreateShaderModule)             \
  X(DeviceDestroy)                        \
  X(DeviceGetFeatures)                    \
  X(DeviceGetQueue)                       \
  X(DevicePopErrorScope)                  \
  X(DevicePushErrorScope)                 \
  X(DeviceRelease)                        \
  X(PipelineLayoutRelease)                \
  X(QueueOnSubmittedWorkDone)             \
  X(QueueSubmit)                          \
  X(QueueWriteBuffer)                     \
  X(ShaderModuleRelease)                  \
  X(SupportedFeaturesFreeMembers)

struct Api {
  static Api load(const std::string& path);  // throws UnavailableError

#define X(name) decltype(&wgpu##name) name = nullptr;
  TORCH_WEBGPU_FUNCTIONS(X)
#undef X
  decltype(&wgpuInstanceWaitAny) InstanceWaitAny = nullptr;                  // wgpu-native exports it and aborts in it
  decltype(&wgpuDevicePoll) DevicePoll = nullptr;                            // wgpu-native only
  decltype(&wgpuInstanceEnumerateAdapters) EnumerateAdapters = nullptr;      // wgpu-native only
  decltype(&wgpuQueueGetTimestampPeriod) QueueGetTimestampPeriod = nullptr;  // wgpu-native only

  bool is_wgpu_native() const { return DevicePoll != nullptr; }
  const char* runtime_name() const { return is_wgpu_native() ? "wgpu-native" : "dawn"; }

  std::string path;
};

inline WGPUStringView to_view(std::string_view text) { return {text.data(), text.size()}; }
std::string to_string(WGPUStringView text);

}  // namespace torch_webgpu
