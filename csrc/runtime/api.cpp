#include "runtime/api.h"

#include <cstring>

#include "runtime/error.h"
#include "runtime/system.h"

namespace torch_webgpu {

std::string to_string(WGPUStringView text) {
  if (!text.data) return {};
  return {text.data, text.length == WGPU_STRLEN ? std::strlen(text.data) : text.length};
}

Api Api::load(const std::string& path) {
  void* library = open_library(path);
  Api api;
  api.path = path;
  const char* missing = nullptr;
#define X(name)                                                                          \
  api.name = reinterpret_cast<decltype(api.name)>(find_function(library, "wgpu" #name)); \
  if (!api.name) missing = "wgpu" #name;
  TORCH_WEBGPU_FUNCTIONS(X)
#undef X
  if (missing) throw UnavailableError(path + " has no function " + missing);
  const auto optional = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(find_function(library, name));
  };
  optional(api.InstanceWaitAny, "wgpuInstanceWaitAny");
  optional(api.DevicePoll, "wgpuDevicePoll");
  optional(api.EnumerateAdapters, "wgpuInstanceEnumerateAdapters");
  optional(api.QueueGetTimestampPeriod, "wgpuQueueGetTimestampPeriod");
  return api;
}

}  // namespace torch_webgpu
