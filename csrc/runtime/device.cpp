#include "runtime/device.h"

#include <algorithm>
#include <cctype>

#include "runtime/driver_threads.h"
#include "runtime/error.h"

namespace torch_webgpu {

namespace {

// A call of this thread whose errors are its caller's, and what was said against it.
struct Trial {
  WGPUErrorFilter filter;
  std::optional<std::string> failure;
};
thread_local Trial* trial = nullptr;

// Dawn's chained struct for toggles; its header is not part of the standard one.
constexpr auto kDawnTogglesSType = static_cast<WGPUSType>(0x0005000A);
struct DawnToggles {
  WGPUChainedStruct chain{nullptr, kDawnTogglesSType};
  size_t enabled_count = 0;
  const char* const* enabled = nullptr;
  size_t disabled_count = 0;
  const char* const* disabled = nullptr;
};

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

const char* backend_name(WGPUBackendType type) {
  switch (type) {
    case WGPUBackendType_Null: return "null";
    case WGPUBackendType_D3D11: return "d3d11";
    case WGPUBackendType_D3D12: return "d3d12";
    case WGPUBackendType_Metal: return "metal";
    case WGPUBackendType_Vulkan: return "vulkan";
    case WGPUBackendType_OpenGL: return "opengl";
    case WGPUBackendType_OpenGLES: return "opengles";
    default: return "unknown";
  }
}

const char* type_name(WGPUAdapterType type) {
  switch (type) {
    case WGPUAdapterType_DiscreteGPU: return "discrete";
    case WGPUAdapterType_IntegratedGPU: return "integrated";
    case WGPUAdapterType_CPU: return "cpu";
    default: return "unknown";
  }
}

// A card of its own before a part of the processor, and both before a driver that runs on the host's cores.
int rank(const AdapterInfo& info) {
  if (info.type == "discrete") return 3;
  if (info.type == "integrated") return 2;
  return info.software ? 0 : 1;
}

// What every WebGPU adapter has, and a browser gives to a page that does not ask for more.
void take_default_limits(WGPULimits& limits) {
  const auto lower = [](auto& limit, auto most) { limit = std::min<std::decay_t<decltype(limit)>>(limit, most); };
  lower(limits.maxBufferSize, 256u << 20);
  lower(limits.maxStorageBufferBindingSize, 128u << 20);
  lower(limits.maxUniformBufferBindingSize, 64u << 10);
  lower(limits.maxStorageBuffersPerShaderStage, 8u);
  lower(limits.maxComputeWorkgroupStorageSize, 16u << 10);
  lower(limits.maxComputeInvocationsPerWorkgroup, 256u);
  lower(limits.maxComputeWorkgroupSizeX, 256u);
  lower(limits.maxComputeWorkgroupSizeY, 256u);
  lower(limits.maxComputeWorkgroupSizeZ, 64u);
  lower(limits.maxComputeWorkgroupsPerDimension, 65535u);
}

WGPUInstance create_instance(const Api& api) {
  WGPUInstanceDescriptor descriptor{};
  WGPUInstanceFeatureName timed_wait = WGPUInstanceFeatureName_TimedWaitAny;
  WGPUInstanceExtras extras{};
  if (api.is_wgpu_native()) {
    extras.chain.sType = static_cast<WGPUSType>(WGPUSType_InstanceExtras);
    extras.backends = WGPUInstanceBackend_Primary;  // the GL backend cannot run our kernels
    descriptor.nextInChain = &extras.chain;
  } else {
    descriptor.requiredFeatureCount = 1;
    descriptor.requiredFeatures = &timed_wait;
  }
  return api.CreateInstance(&descriptor);
}

// False when the time is over first.
bool wait_for(const Api& api, WGPUInstance instance, WGPUFuture future, const bool& done,
              uint64_t timeout_ns = UINT64_MAX) {
  if (api.is_wgpu_native()) return true;  // its requests call back before they return
  WGPUFutureWaitInfo wait{};
  wait.future = future;
  auto status = WGPUWaitStatus_Success;
  while (!done && status == WGPUWaitStatus_Success) {
    status = api.InstanceWaitAny(instance, 1, &wait, timeout_ns);
  }
  return status != WGPUWaitStatus_TimedOut;
}

AdapterInfo describe(const Api& api, WGPUAdapter adapter) {
  WGPUAdapterInfo raw{};
  api.AdapterGetInfo(adapter, &raw);
  AdapterInfo info;
  info.name = to_string(raw.device);
  info.vendor = to_string(raw.vendor);
  info.architecture = to_string(raw.architecture);
  info.driver = to_string(raw.description);
  info.backend = backend_name(raw.backendType);
  info.type = type_name(raw.adapterType);
  info.vendor_id = raw.vendorID;
  info.device_id = raw.deviceID;
  info.subgroup_min = raw.subgroupMinSize;
  info.subgroup_max = raw.subgroupMaxSize;
  info.software = raw.adapterType == WGPUAdapterType_CPU;
  return info;
}

struct AdapterRequest {
  WGPUAdapter adapter = nullptr;
  bool done = false;
};

WGPUAdapter request_adapter(const Api& api, WGPUInstance instance, const WGPURequestAdapterOptions& options) {
  AdapterRequest request;
  WGPURequestAdapterCallbackInfo callback{};
  callback.mode = WGPUCallbackMode_AllowProcessEvents;
  callback.userdata1 = &request;
  callback.callback = [](WGPURequestAdapterStatus, WGPUAdapter adapter, WGPUStringView, void* data, void*) {
    auto* request = static_cast<AdapterRequest*>(data);
    request->adapter = adapter;
    request->done = true;
  };
  wait_for(api, instance, api.InstanceRequestAdapter(instance, &options, callback), request.done);
  return request.adapter;
}

// Every adapter the library will name, best first. The standard API hands out one adapter per kind of request.
std::vector<WGPUAdapter> list_adapters(const Api& api, WGPUInstance instance, bool null_backend) {
  std::vector<WGPUAdapter> adapters;
  if (null_backend) {
    WGPURequestAdapterOptions options{};
    options.featureLevel = WGPUFeatureLevel_Core;
    options.backendType = WGPUBackendType_Null;
    if (auto* adapter = request_adapter(api, instance, options)) adapters.push_back(adapter);
    return adapters;
  }
  if (api.is_wgpu_native()) {
    WGPUInstanceEnumerateAdapterOptions options{};
    options.backends = WGPUInstanceBackend_Primary;
    adapters.resize(api.EnumerateAdapters(instance, &options, nullptr));
    api.EnumerateAdapters(instance, &options, adapters.data());
    return adapters;
  }
  for (const auto backend : {WGPUBackendType_Undefined, WGPUBackendType_Vulkan}) {
    for (const auto power : {WGPUPowerPreference_HighPerformance, WGPUPowerPreference_LowPower}) {
      for (const WGPUBool fallback : {0, 1}) {
        WGPURequestAdapterOptions options{};
        options.featureLevel = WGPUFeatureLevel_Core;
        options.powerPreference = power;
        options.forceFallbackAdapter = fallback;
        options.backendType = backend;
        if (auto* adapter = request_adapter(api, instance, options)) adapters.push_back(adapter);
      }
    }
  }
  return adapters;
}

// The best adapter that matches. Empty when none does, with the reason in `tried`.
std::optional<Adapter> try_library(const std::string& path, const DeviceOptions& options, std::string& tried) {
  tried += "\n  - " + path + ": ";
  Adapter found;
  try {
    found.api = Api::load(path);
  } catch (const UnavailableError& error) {
    tried += error.what();
    return std::nullopt;
  }
  found.instance = create_instance(found.api);
  if (!found.instance) {
    tried += "the library gave no instance";
    return std::nullopt;
  }
  const std::string wanted = lower(options.adapter);
  const bool null_backend = wanted == "null";
  std::string seen;
  for (auto* handle : list_adapters(found.api, found.instance, null_backend)) {
    AdapterInfo info = describe(found.api, handle);
    // Without a usable driver Dawn offers a backend that computes nothing.
    const bool usable = null_backend || info.backend != "null";
    const bool matches =
        null_backend || wanted.empty() || lower(info.name + " " + info.driver).find(wanted) != std::string::npos;
    const bool better = !found.handle || rank(info) > rank(found.info);
    if (usable && seen.find(info.name) == std::string::npos) seen += (seen.empty() ? "" : ", ") + info.name;
    if (usable && matches && better) {
      if (found.handle) found.api.AdapterRelease(found.handle);
      found.handle = handle;
      found.info = std::move(info);
    } else {
      found.api.AdapterRelease(handle);
    }
  }
  if (found.handle) return found;
  found.api.InstanceRelease(found.instance);
  tried += seen.empty() ? "no adapter answered" : "no adapter matches '" + options.adapter + "' among: " + seen;
  return std::nullopt;
}

struct FeatureNumbers {
  WGPUFeatureName f16, timestamps, subgroups;
};
constexpr FeatureNumbers kStandardNumbers{WGPUFeatureName_ShaderF16, WGPUFeatureName_TimestampQuery,
                                          WGPUFeatureName_Subgroups};
constexpr FeatureNumbers kNativeNumbers{WGPUFeatureName_ShaderF16, WGPUFeatureName_TimestampQuery,
                                        static_cast<WGPUFeatureName>(WGPUNativeFeature_Subgroup)};
// Dawn's own, before it took those of the standard header over.
constexpr FeatureNumbers kEarlyDawnNumbers{static_cast<WGPUFeatureName>(0x0A), static_cast<WGPUFeatureName>(0x03),
                                           static_cast<WGPUFeatureName>(0x11)};

bool contains(const WGPUSupportedFeatures& set, WGPUFeatureName feature) {
  return std::find(set.features, set.features + set.featureCount, feature) != set.features + set.featureCount;
}

// Dawn's own: calls other than encoding may then come from several threads at once.
constexpr auto kImplicitDeviceSynchronization = static_cast<WGPUFeatureName>(0x00050004);

// Every device has the core features: unless it says so by their standard number, its library has other numbers.
bool has_standard_numbers(const Api& api, WGPUDevice device) {
  WGPUSupportedFeatures features{};
  api.DeviceGetFeatures(device, &features);
  const bool standard = contains(features, WGPUFeatureName_CoreFeaturesAndLimits);
  api.SupportedFeaturesFreeMembers(features);
  return standard;
}

struct DeviceRequest {
  WGPUDevice device = nullptr;
  std::string message;
  bool done = false;
};

DeviceRequest request(const Api& api, WGPUInstance instance, WGPUAdapter adapter,
                      const WGPUDeviceDescriptor& descriptor) {
  DeviceRequest request;
  WGPURequestDeviceCallbackInfo callback{};
  callback.mode = WGPUCallbackMode_AllowProcessEvents;
  callback.userdata1 = &request;
  callback.callback = [](WGPURequestDeviceStatus, WGPUDevice device, WGPUStringView message, void* data, void*) {
    auto* request = static_cast<DeviceRequest*>(data);
    request->device = device;
    request->message = to_string(message);
    request->done = true;
  };
  wait_for(api, instance, api.AdapterRequestDevice(adapter, &descriptor, callback), request.done);
  return request;
}

}  // namespace

Adapter Adapter::find(const DeviceOptions& options) {
  std::vector<std::string> paths;
  const auto append = [&](const std::vector<std::string>& more) {
    paths.insert(paths.end(), more.begin(), more.end());
  };
  if (options.runtime == "dawn" || options.runtime.empty()) append(options.dawn_paths);
  if (options.runtime == "wgpu" || options.runtime.empty()) append(options.wgpu_paths);
  if (options.runtime.find('/') != std::string::npos) paths.push_back(options.runtime);
  if (!options.limits.empty() && options.limits != "default") {
    throw UnavailableError("TORCH_WEBGPU_LIMITS may be 'default' or unset, not '" + options.limits + "'");
  }
  std::string tried;
  for (const auto& path : paths) {
    if (auto adapter = try_library(path, options, tried)) {
      adapter->default_limits = options.limits == "default";
      return std::move(*adapter);
    }
  }
  if (paths.empty()) {
    tried = "\n  - no library is known for runtime '" + options.runtime + "' (say dawn, wgpu or a path to a library)";
  }
  throw UnavailableError(
      "no WebGPU adapter was found. Tried:" + tried +
      "\nInstall a Vulkan driver (for a software adapter: the package mesa-vulkan-drivers, version 25 or newer) and a "
      "WebGPU library (`pip install wgpu`), or point TORCH_WEBGPU_RUNTIME at one.");
}

Device::Device(Adapter adapter)
    : api(std::move(adapter.api)), info(std::move(adapter.info)), instance_(adapter.instance) {
  api.AdapterGetLimits(adapter.handle, &limits);
  limits.nextInChain = nullptr;
  if (adapter.default_limits) take_default_limits(limits);
  request_device(adapter.handle);
  queue = api.DeviceGetQueue(handle);
}

void Device::request_device(WGPUAdapter adapter) {
  WGPUDeviceDescriptor descriptor{};
  descriptor.requiredLimits = &limits;
  // Dawn rounds timestamps to 100 us for the sake of web pages.
  const char* disabled[] = {"timestamp_quantization"};
  DawnToggles toggles;
  toggles.disabled_count = 1;
  toggles.disabled = disabled;
  if (!api.is_wgpu_native()) descriptor.nextInChain = &toggles.chain;

  descriptor.uncapturedErrorCallbackInfo.userdata1 = this;
  descriptor.uncapturedErrorCallbackInfo.callback = [](WGPUDevice const*, WGPUErrorType type, WGPUStringView message,
                                                       void* data, void*) {
    if (trial && (trial->filter != WGPUErrorFilter_OutOfMemory || type == WGPUErrorType_OutOfMemory)) {
      if (!trial->failure) trial->failure = to_string(message);
      return;
    }
    auto* device = static_cast<Device*>(data);
    const std::lock_guard guard(device->error_mutex_);
    if (device->error_.empty()) device->error_ = to_string(message);
    device->has_error_ = true;
    ++device->errors_reported_;
  };
  descriptor.deviceLostCallbackInfo.mode = WGPUCallbackMode_AllowSpontaneous;
  descriptor.deviceLostCallbackInfo.userdata1 = this;
  descriptor.deviceLostCallbackInfo.callback = [](WGPUDevice const*, WGPUDeviceLostReason, WGPUStringView message,
                                                  void* data, void*) {
    auto* device = static_cast<Device*>(data);
    if (!device->handle) return;  // one that was opened only to see what it has
    const std::lock_guard guard(device->error_mutex_);
    device->lost_reason_ = to_string(message);
    device->lost_ = true;
  };

  WGPUSupportedFeatures supported{};
  api.AdapterGetFeatures(adapter, &supported);
  if (!api.is_wgpu_native() && !contains(supported, kImplicitDeviceSynchronization)) {
    throw UnavailableError(api.path + " cannot be called by several threads: it lacks implicit-device-synchronization");
  }
  const auto open = [&](const FeatureNumbers& numbers) {
    has_f16 = contains(supported, numbers.f16);
    has_timestamps = contains(supported, numbers.timestamps);
    has_subgroups = contains(supported, numbers.subgroups);
    std::vector<WGPUFeatureName> required;
    if (!api.is_wgpu_native()) required.push_back(kImplicitDeviceSynchronization);
    if (has_f16) required.push_back(numbers.f16);
    if (has_timestamps) required.push_back(numbers.timestamps);
    if (has_subgroups) required.push_back(numbers.subgroups);
    descriptor.requiredFeatureCount = required.size();
    descriptor.requiredFeatures = required.data();
    return request(api, instance_, adapter, descriptor);
  };
  auto opened = open(api.is_wgpu_native() ? kNativeNumbers : kStandardNumbers);
  if (opened.device && !api.is_wgpu_native() && !has_standard_numbers(api, opened.device)) {
    api.DeviceRelease(opened.device);
    opened = open(kEarlyDawnNumbers);
  }
  api.SupportedFeaturesFreeMembers(supported);
  if (!opened.device) throw UnavailableError("the adapter " + info.name + " gave no device: " + opened.message);
  handle = opened.device;
  if (info.software) spread_driver_threads();
  if (has_f16) features.emplace_back("shader-f16");
  if (has_timestamps) features.emplace_back("timestamp-query");
  if (has_subgroups) features.emplace_back("subgroups");
}

bool Device::wait(WGPUFuture future, const bool& done, uint64_t timeout_ns) const {
  if (!api.is_wgpu_native()) return wait_for(api, instance_, future, done, timeout_ns);
  while (!done && !is_lost()) api.DevicePoll(handle, true, nullptr);
  return true;
}

void Device::poll() const {
  if (api.is_wgpu_native()) {
    api.DevicePoll(handle, false, nullptr);
  } else {
    api.InstanceProcessEvents(instance_);
  }
}

// Dawn has error scopes per thread. All threads share those of wgpu-native, which in turn calls back from within the
// call that fails.
std::optional<std::string> Device::failure_of(WGPUErrorFilter filter, const std::function<void()>& create) const {
  if (api.is_wgpu_native()) {
    Trial attempt{filter, {}};
    trial = &attempt;
    create();
    trial = nullptr;
    return attempt.failure;
  }
  struct Scope {
    std::optional<std::string> failure;
    bool done = false;
  } scope;
  api.DevicePushErrorScope(handle, filter);
  create();
  WGPUPopErrorScopeCallbackInfo callback{};
  callback.mode = WGPUCallbackMode_WaitAnyOnly;  // no other thread that polls may call it
  callback.userdata1 = &scope;
  callback.callback = [](WGPUPopErrorScopeStatus, WGPUErrorType type, WGPUStringView message, void* data, void*) {
    auto* scope = static_cast<Scope*>(data);
    if (type != WGPUErrorType_NoError) scope->failure = to_string(message);
    scope->done = true;
  };
  wait_for(api, instance_, api.DevicePopErrorScope(handle, callback), scope.done);
  return scope.failure;
}

void Device::throw_pending_error(const std::string& during) {
  throw_if_lost();
  if (!has_pending_error()) return;
  const std::lock_guard guard(error_mutex_);
  const std::string message = std::move(error_);
  error_.clear();
  has_error_ = false;
  throw Error("webgpu: an operation failed on the device" + (during.empty() ? "" : " (" + during + ")") + ": " +
              message);
}

void Device::throw_lost() const {
  const std::lock_guard guard(error_mutex_);
  throw DeviceLostError("webgpu: the device was lost and this process can no longer use it; restart the process" +
                        OpScope::suffix() + ". " + lost_reason_);
}

void Device::destroy() {
  api.DeviceDestroy(handle);
  poll();
  const std::lock_guard guard(error_mutex_);
  if (is_lost()) return;
  lost_reason_ = "It was destroyed.";  // wgpu-native does not report this
  lost_ = true;
}

}  // namespace torch_webgpu
