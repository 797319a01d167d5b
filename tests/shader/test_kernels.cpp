// Every kernel compiles, for every kind of adapter. Dawn's Null adapter checks texts as any adapter does, and has all
// features that they name.
#include <doctest/doctest.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <unordered_set>

#include "kernels.h"
#include "runtime/device.h"

namespace torch_webgpu::test {
namespace {

struct Kind {
  const char* name;
  Target target;
};
constexpr Kind kKinds[] = {
    {"software, subgroups of 8", {8, 8, true, true}}, {"software, no subgroups", {8, 0, true, true}},
    {"GPU, subgroups of 32", {64, 32, true, false}},  {"GPU, subgroups of 64", {64, 64, true, false}},
    {"GPU, no subgroups", {64, 0, true, false}},
};

const Device& null_device() {
  static const Device& device = *[] {
    DeviceOptions options;
    options.runtime = "dawn";
    options.adapter = "null";
    if (const char* path = std::getenv("TORCH_WEBGPU_TEST_DAWN")) options.dawn_paths = {path};
    return new Device(Adapter::find(options));  // never closed, like the real one
  }();
  return device;
}

std::optional<std::string> failure_of(const std::string& text) {
  const Device& device = null_device();
  return device.failure_of(WGPUErrorFilter_Validation, [&] {
    WGPUShaderSourceWGSL wgsl{};
    wgsl.chain.sType = WGPUSType_ShaderSourceWGSL;
    wgsl.code = to_view(text);
    WGPUShaderModuleDescriptor descriptor{};
    descriptor.nextInChain = &wgsl.chain;
    device.api.ShaderModuleRelease(device.api.DeviceCreateShaderModule(device.handle, &descriptor));
  });
}

void check_compiles(const std::string& label, const std::string& text) {
  INFO(label << "\n" << text);
  const auto failure = failure_of(text);
  CHECK_MESSAGE(!failure.has_value(), failure.value_or(""));
}

// The text without the workgroup's size, which no check of a text depends on.
std::string without_size(std::string text, uint32_t workgroup) {
  for (const std::string& before : {std::string("@workgroup_size("), std::string("const WORKGROUP = ")}) {
    const size_t at = text.find(before + std::to_string(workgroup));
    if (at != std::string::npos) text.erase(at + before.size(), std::to_string(workgroup).size());
  }
  return text;
}

// Many texts are the same for several kinds of adapter, and for several specs.
void check_family(void (*print)(const Target&, const Emit&)) {
  std::unordered_set<std::string> seen;
  for (const auto& [name, target] : kKinds) {
    const std::string kind = name;
    CAPTURE(kind);
    size_t count = 0;
    print(target, [&](const std::string& label, const std::string& text) {
      ++count;
      if (seen.insert(without_size(text, target.workgroup)).second) check_compiles(label, text);
    });
    CHECK(count > 0);
  }
}

}  // namespace

TEST_CASE("a text that is wrong does not compile") {
  CHECK(null_device().info.backend == "null");
  CHECK(null_device().has_subgroups);
  CHECK_FALSE(failure_of("fn f() -> f32 { return 1.5; }"));
  CHECK(failure_of("fn f() -> u32 { return 1.5; }"));
}

TEST_CASE("pointwise") { check_family(print_pointwise_kernels); }
TEST_CASE("reduce") { check_family(print_reduce_kernels); }
TEST_CASE("join") { check_family(print_join_kernels); }
TEST_CASE("indexed") { check_family(print_indexed_kernels); }
TEST_CASE("program") { check_family(print_program_kernels); }
TEST_CASE("multi_tensor") { check_family(print_multi_kernels); }
TEST_CASE("matmul") { check_family(print_matmul_kernels); }
TEST_CASE("convolution") { check_family(print_convolution_kernels); }
TEST_CASE("attention") { check_family(print_attention_kernels); }
TEST_CASE("norm") { check_family(print_norm_kernels); }
TEST_CASE("softmax") { check_family(print_softmax_kernels); }
TEST_CASE("selection") { check_family(print_selection_kernels); }

}  // namespace torch_webgpu::test
