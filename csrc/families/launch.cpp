#include "families/launch.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <string_view>

namespace torch_webgpu {

const Target& target() {
  static const Target traits = [] {
    const Device& device = runtime().device;
    Target result;
    result.software = device.info.software;
    // A software adapter runs a workgroup as a loop over its vector lanes: eight of them, and nothing to hide latency
    // with.
    result.workgroup = device.info.software ? 8 : 64;
    const bool exact = device.has_subgroups && device.info.subgroup_min == device.info.subgroup_max;
    result.subgroup = exact ? device.info.subgroup_min : 0;
    // The kernels for GPUs can be tested where there is none.
    if (const char* as = std::getenv("TORCH_WEBGPU_TARGET"); as && std::string_view(as) == "gpu") {
      result.software = false;
      result.workgroup = 64;
      result.subgroup = 0;
    }
    result.subgroup_directive = !device.api.is_wgpu_native();
    result.page_bytes = static_cast<uint32_t>(max_binding_bytes());
    return result;
  }();
  return traits;
}

// Offsets in a kernel are 32-bit, so a window never exceeds 2 GiB.
uint64_t max_binding_bytes() {
  static const uint64_t limit = [] {
    uint64_t most = std::min<uint64_t>(runtime().device.limits.maxStorageBufferBindingSize, uint64_t{1} << 31);
    if (const char* lower = std::getenv("TORCH_WEBGPU_TEST_BINDING_BYTES")) {
      most = std::clamp<uint64_t>(std::strtoull(lower, nullptr, 10), kWindowBytes, most);
    }
    return most & ~(kWindowBytes - 1);
  }();
  return limit;
}

uint64_t most_flops() {
  static const uint64_t most = [] {
    if (const char* lower = std::getenv("TORCH_WEBGPU_TEST_FLOPS")) return uint64_t{std::strtoull(lower, nullptr, 10)};
    const Device& device = runtime().device;
    if (device.info.software) return std::numeric_limits<uint64_t>::max();
    constexpr uint64_t kDiscrete = 200'000'000'000, kIntegrated = 40'000'000'000;
    return device.info.type == "discrete" ? kDiscrete : kIntegrated;
  }();
  return most;
}

Chunks chunks_of(uint64_t steps, uint32_t workgroup) {
  const auto up = [](uint64_t value, uint64_t by) { return (value + by - 1) / by; };
  uint64_t groups = 0;
  if (target().software) {
    constexpr uint64_t kSteps = 256, kGroups = 16;  // an empty workgroup costs 0.1 us; two cores share sixteen
    groups = std::clamp<uint64_t>(steps / kSteps, 1, kGroups);
  } else {
    groups = std::min<uint64_t>(up(steps, workgroup), 65535);
  }
  const uint64_t chunk = up(up(steps, groups), workgroup) * workgroup;
  return {static_cast<uint32_t>(up(steps, chunk)), static_cast<uint32_t>(chunk)};
}

void write_scalar(uint32_t* words, Compute type, const c10::Scalar& value) {
  switch (type) {
    case Compute::f32: {
      const auto number = static_cast<float>(value.toDouble());
      std::memcpy(words, &number, 4);
      return;
    }
    case Compute::boolean: words[0] = value.isFloatingPoint() ? value.toDouble() != 0 : value.toLong() != 0; return;
    case Compute::u64: {
      const uint64_t number = value.isFloatingPoint()       ? static_cast<uint64_t>(value.toDouble())
                              : value.type() == at::kUInt64 ? value.toUInt64()
                                                            : static_cast<uint64_t>(value.toLong());
      std::memcpy(words, &number, 8);
      return;
    }
    case Compute::f64: {
      const double number = value.toDouble();
      std::memcpy(words, &number, 8);
      return;
    }
    case Compute::c64: {
      const auto number = static_cast<c10::complex<float>>(value.toComplexDouble());
      std::memcpy(words, &number, 8);
      return;
    }
    case Compute::c128: {
      const auto number = value.toComplexDouble();
      std::memcpy(words, &number, 16);
      return;
    }
    case Compute::i32:
    case Compute::i64: {
      const int64_t number = value.isFloatingPoint() ? static_cast<int64_t>(value.toDouble()) : value.toLong();
      std::memcpy(words, &number, type == Compute::i64 ? 8 : 4);
      return;
    }
  }
}

}  // namespace torch_webgpu
