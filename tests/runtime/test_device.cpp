// Choosing a library and an adapter, and what the device says of itself.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "support.h"

namespace torch_webgpu {
using namespace test;

namespace {

// Sets a variable for the length of a scope.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    setenv(name, value, 1);
  }
  ~Environment() {
    if (before_.empty()) {
      unsetenv(name_);
    } else {
      setenv(name_, before_.c_str(), 1);
    }
  }

 private:
  const char* name_;
  std::string before_;
};

std::string unavailable(const DeviceOptions& options) {
  return message_of<UnavailableError>([&] { Adapter::find(options); });
}

}  // namespace

TEST_CASE("device: a missing library is named") {
  DeviceOptions options;
  options.runtime = "/nowhere/libwebgpu.so";
  const auto message = unavailable(options);
  CHECK(contains(message, "/nowhere/libwebgpu.so"));
  CHECK(contains(message, "No such file"));
  CHECK(contains(message, "mesa-vulkan-drivers"));
}

TEST_CASE("device: every library that was tried is named") {
  DeviceOptions options;
  options.dawn_paths = {"/nowhere/dawn.so", "/elsewhere/dawn.so"};
  options.wgpu_paths = {"/nowhere/wgpu.so"};
  const auto message = unavailable(options);
  CHECK(contains(message, "/nowhere/dawn.so"));
  CHECK(contains(message, "/elsewhere/dawn.so"));
  CHECK(contains(message, "/nowhere/wgpu.so"));
  options.runtime = "wgpu";
  CHECK_FALSE(contains(unavailable(options), "dawn.so"));
}

TEST_CASE("device: a file that is no library is refused") {
  // Of this process alone: the tests of the other runtime may run beside it.
  const auto name = "torch_webgpu_no_library_" + std::to_string(getpid()) + ".so";
  const std::string path = std::filesystem::temp_directory_path() / name;
  std::ofstream(path) << "not ELF";
  DeviceOptions options;
  options.runtime = path;
  const auto message = unavailable(options);
  std::remove(path.c_str());
  CHECK(contains(message, path));
  CHECK(contains(message, "too short"));
}

TEST_CASE("device: a library without WebGPU is refused") {
  DeviceOptions options;
  Dl_info libm;
  REQUIRE(dladdr(dlsym(RTLD_DEFAULT, "cos"), &libm) != 0);
  options.runtime = libm.dli_fname;
  const auto message = unavailable(options);
  CHECK(contains(message, libm.dli_fname));
  CHECK(contains(message, "has no function wgpu"));
}

TEST_CASE("device: an unknown runtime is refused") {
  DeviceOptions options = options_from_environment();
  options.runtime = "angle";
  CHECK(contains(unavailable(options), "'angle'"));
}

TEST_CASE("device: an unknown adapter is refused and the known ones are named") {
  DeviceOptions options = options_from_environment();
  options.adapter = "Voodoo 2";
  const auto message = unavailable(options);
  CHECK(contains(message, "'Voodoo 2'"));
  CHECK(contains(message, runtime().device.info.name));
}

TEST_CASE("device: an adapter is found by part of its name in any case") {
  DeviceOptions options = options_from_environment();
  std::string part = runtime().device.info.name.substr(0, 5);
  std::transform(part.begin(), part.end(), part.begin(), [](unsigned char c) { return std::toupper(c); });
  options.adapter = part;
  CHECK(Adapter::find(options).info.name == runtime().device.info.name);
}

TEST_CASE("device: without a driver there is no adapter") {
  const Environment files("VK_DRIVER_FILES", "/nowhere.json"), old_files("VK_ICD_FILENAMES", "/nowhere.json");
  const auto message = unavailable(options_from_environment());
  CHECK(contains(message, "no adapter answered"));
}

TEST_CASE("device: the Null backend is there only for those who ask") {
  CHECK(runtime().device.info.backend != "null");
  DeviceOptions options = options_from_environment();
  options.adapter = "null";
  if (runtime().device.api.is_wgpu_native()) {
    CHECK(contains(unavailable(options), "no adapter answered"));
    return;
  }
  auto& null = *new Runtime(Adapter::find(options));
  CHECK(null.device.info.backend == "null");
  const Words out(64, null);
  for (int i = 0; i < 1000; ++i) run(add_constant, {&out}, {1}, 1, null.stream);
  null.stream.synchronize();
  CHECK(null.stream.stats().dispatches == 1000);
}

TEST_CASE("device: the adapter describes itself") {
  const auto& device = runtime().device;
  CHECK_FALSE(device.info.name.empty());
  CHECK_FALSE(device.info.driver.empty());
  CHECK(contains("vulkan metal d3d12", device.info.backend));
  CHECK(contains("discrete integrated cpu", device.info.type));
  CHECK(device.info.software == (device.info.type == "cpu"));
  CHECK(std::string(device.api.runtime_name()) == (device.api.DevicePoll ? "wgpu-native" : "dawn"));
  CHECK(device.has_subgroups == (std::count(device.features.begin(), device.features.end(), "subgroups") == 1));
  if (device.has_subgroups && !device.api.is_wgpu_native()) {  // which does not say how wide they are
    CHECK(device.info.subgroup_min >= 4);
    CHECK(device.info.subgroup_max >= device.info.subgroup_min);
    CHECK(device.info.subgroup_max <= 128);
  }
}

TEST_CASE("device: the limits may be those that every adapter has") {
  DeviceOptions options = options_from_environment();
  options.limits = "default";
  auto& modest = *new Runtime(Adapter::find(options));
  CHECK(modest.device.limits.maxStorageBuffersPerShaderStage == 8);
  CHECK(modest.device.limits.maxStorageBufferBindingSize == 128 << 20);
  CHECK(modest.device.limits.maxComputeWorkgroupStorageSize == 16 << 10);
  const Words out(64, modest);
  run(add_constant, {&out}, {1}, 1, modest.stream);
  modest.stream.synchronize();
  options.limits = "none";
  CHECK(contains(unavailable(options), "TORCH_WEBGPU_LIMITS"));
}

TEST_CASE("device: the limits are the adapter's own") {
  const Adapter adapter = Adapter::find(options_from_environment());
  WGPULimits own{}, granted{};
  adapter.api.AdapterGetLimits(adapter.handle, &own);
  const auto& device = *new Device(adapter);
  void* library = dlopen(device.api.path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  REQUIRE(library != nullptr);
  const auto get_limits = reinterpret_cast<decltype(&wgpuDeviceGetLimits)>(dlsym(library, "wgpuDeviceGetLimits"));
  REQUIRE(static_cast<bool>(get_limits));
  get_limits(device.handle, &granted);
#define SAME_LIMIT(name)                 \
  CHECK(device.limits.name == own.name); \
  CHECK(granted.name == own.name)
  SAME_LIMIT(maxStorageBufferBindingSize);
  SAME_LIMIT(maxBufferSize);
  SAME_LIMIT(maxStorageBuffersPerShaderStage);
  SAME_LIMIT(maxUniformBufferBindingSize);
  SAME_LIMIT(maxComputeWorkgroupStorageSize);
  SAME_LIMIT(maxComputeInvocationsPerWorkgroup);
  SAME_LIMIT(maxComputeWorkgroupSizeX);
  SAME_LIMIT(maxComputeWorkgroupsPerDimension);
#undef SAME_LIMIT
  // What the WebGPU specification promises on every adapter.
  CHECK(own.maxStorageBufferBindingSize >= uint64_t{128} << 20);
  CHECK(own.maxBufferSize >= uint64_t{256} << 20);
  CHECK(own.maxComputeWorkgroupsPerDimension >= 65535);
}

TEST_CASE("device: features are usable where they are announced") {
  auto& device = runtime().device;
  const Words out(64);
  if (device.has_f16) {
    Launch launch = make_launch(add_constant, {out.binding()});
    launch.key.words[1] = 1;
    launch.print = [](const Launch&) -> KernelSource {
      return {"half",
              "enable f16; @group(0) @binding(0) var<storage, read_write> m0: array<f16>;"
              "@compute @workgroup_size(1) fn main() { m0[0] = f16(1.5); m0[1] = f16(-2.0); }"};
    };
    runtime().stream.dispatch(launch);
    CHECK(out.get()[0] == 0xC0003E00);
  }
  if (device.has_subgroups) {
    Launch launch = make_launch(add_constant, {out.binding()});
    launch.key.words[1] = 2;
    launch.context = &device;
    launch.print = [](const Launch& self) -> KernelSource {
      const bool wgpu = static_cast<const Device*>(self.context)->api.is_wgpu_native();
      return {"subgroup", std::string(wgpu ? "" : "enable subgroups;") +
                              "@group(0) @binding(0) var<storage, read_write> m0: array<u32>;"
                              "@compute @workgroup_size(1) fn main(@builtin(subgroup_size) size: u32) {"
                              "m0[0] = size; m0[1] = subgroupAdd(7u); }"};
    };
    runtime().stream.dispatch(launch);
    const auto result = out.get();
    if (device.info.subgroup_max > 0) {
      CHECK(result[0] >= device.info.subgroup_min);
      CHECK(result[0] <= device.info.subgroup_max);
    }
    CHECK(result[1] == 7);
  }
}

}  // namespace torch_webgpu
