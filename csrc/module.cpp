// Python bindings: the state of the device, its memory and its fallbacks. Ops are reached through the dispatcher.
#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/InferenceMode.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/Generator.h>
#include <torch/csrc/utils/pybind.h>

#include <chrono>

#include "bindings/bindings.h"
#include "device/allocator.h"
#include "device/context.h"
#include "device/fallback.h"
#include "device/generator.h"
#include "device/memory_limit.h"

namespace py = pybind11;

namespace torch_webgpu {
namespace {

py::dict device_properties() {
  const Device& device = runtime().device;
  py::dict limits;
#define LIMIT(name) limits[#name] = device.limits.name
  LIMIT(maxBufferSize);
  LIMIT(maxStorageBufferBindingSize);
  LIMIT(maxStorageBuffersPerShaderStage);
  LIMIT(maxUniformBufferBindingSize);
  LIMIT(minUniformBufferOffsetAlignment);
  LIMIT(minStorageBufferOffsetAlignment);
  LIMIT(maxComputeWorkgroupStorageSize);
  LIMIT(maxComputeInvocationsPerWorkgroup);
  LIMIT(maxComputeWorkgroupSizeX);
  LIMIT(maxComputeWorkgroupSizeY);
  LIMIT(maxComputeWorkgroupSizeZ);
  LIMIT(maxComputeWorkgroupsPerDimension);
#undef LIMIT
  py::dict properties;
  properties["name"] = device.info.name;
  properties["vendor"] = device.info.vendor;
  properties["architecture"] = device.info.architecture;
  properties["driver"] = device.info.driver;
  properties["backend"] = device.info.backend;
  properties["type"] = device.info.type;
  properties["runtime"] = device.api.runtime_name();
  properties["library"] = device.api.path;
  properties["subgroup_sizes"] = py::make_tuple(device.info.subgroup_min, device.info.subgroup_max);
  properties["features"] = device.features;
  properties["limits"] = limits;
  return properties;
}

std::map<std::string, uint64_t> counters() {
  if (!is_open()) return {};
  const PoolStats pool = runtime().pool.stats();
  const StreamStats stream = runtime().stream.stats();
  return {{"allocated_bytes.all.current", pool.allocated_bytes},
          {"allocated_bytes.all.peak", pool.allocated_peak},
          {"allocated_bytes.all.allocated", pool.allocated_total},
          {"allocated_bytes.all.freed", pool.freed_total},
          {"reserved_bytes.all.current", pool.reserved_bytes},
          {"reserved_bytes.all.peak", pool.reserved_peak},
          {"allocation.all.current", pool.live},
          {"allocation.all.allocated", pool.allocations},
          {"allocation.all.freed", pool.frees},
          {"num_alloc_retries", pool.retries},
          {"num_ooms", pool.out_of_memory},
          {"buffers_created", pool.buffers_created},
          {"dispatches", stream.dispatches},
          {"copies", stream.copies},
          {"submits", stream.submits},
          {"uploads", stream.uploads},
          {"readbacks", stream.readbacks},
          {"bind_group_hits", stream.bind_group_hits},
          {"bind_group_misses", stream.bind_group_misses},
          {"kernels_compiled", stream.kernels_compiled},
          {"kernels_cached", stream.kernels_cached},
          {"kernel_bytes", stream.kernel_bytes}};
}

c10::DeviceAllocator& device_allocator() { return *c10::getDeviceAllocator(kDeviceType); }

// Microseconds of `at::add` of two tensors of `elements`, without Python; `dry` leaves the calls into WebGPU out.
double time_add(int64_t elements, int64_t repeats, bool dry) {
  const py::gil_scoped_release release;
  const auto options = at::TensorOptions(kDeviceType).dtype(at::kFloat);
  const at::Tensor a = at::empty({elements}, options), b = at::empty({elements}, options);
  const auto run = [&](int64_t count) {
    const auto start = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < count; ++i) at::add(a, b);
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
  };
  Stream& stream = runtime().stream;
  run(200);
  stream.synchronize();
  stream.set_dry(dry);
  double best = 1e30;
  for (int round = 0; round < 7; ++round) {
    best = std::min(best, run(repeats) / static_cast<double>(repeats));
    stream.synchronize();
  }
  stream.set_dry(false);
  return best;
}

// Lets Ctrl-C end a wait for the device: the main thread runs the handlers of signals that came, and raises what they
// raise.
void check_signals() {
  if (!Py_IsInitialized()) return;
  const py::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

}  // namespace
}  // namespace torch_webgpu

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  using namespace torch_webgpu;
  const auto without_gil = py::call_guard<py::gil_scoped_release>();
  Stream::set_interrupt(&check_signals);
  py::register_local_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const IndexError& error) {
      PyErr_SetString(PyExc_IndexError, error.what());
    }
  });
  m.def("set_library_paths", &set_library_paths);
  m.def("is_available", &is_available, without_gil);
  m.def("unavailable_reason", &unavailable_reason, without_gil);
  m.def("is_open", &is_open);
  m.def("in_bad_fork", &in_bad_fork);
  m.def("device_properties", &device_properties);
  m.def(
      "synchronize",
      [] {
        if (is_open()) runtime().stream.synchronize();
      },
      without_gil);
  m.def(
      "flush",
      [] {
        if (is_open()) runtime().stream.flush();
      },
      without_gil);
  m.def("counters", &counters);
  m.def("empty_cache", [] { device_allocator().emptyCache(); }, without_gil);
  m.def("reset_peak_memory_stats", [] { device_allocator().resetPeakStats(0); });
  m.def("reset_accumulated_memory_stats", [] { device_allocator().resetAccumulatedStats(0); });
  m.def("mem_get_info", [] { return device_allocator().getMemoryInfo(0); });
  m.def("set_memory_limit", &set_memory_limit);
  m.def("fallback_counts", &fallback_counts);
  m.def("reset_fallback_counts", &reset_fallback_counts);
  m.def("fallback_mode", [] {
    switch (fallback_mode()) {
      case FallbackMode::error: return "error";
      case FallbackMode::quiet: return "quiet";
      default: return "warn";
    }
  });
  m.def("set_fallback_mode", [](const std::string& mode) {
    if (mode == "error") return set_fallback_mode(FallbackMode::error);
    if (mode == "quiet") return set_fallback_mode(FallbackMode::quiet);
    if (mode == "warn") return set_fallback_mode(FallbackMode::warn);
    throw py::value_error("the fallback mode may be error, warn or quiet, not '" + mode + "'");
  });
  m.def("default_generator",
        [] { return py::reinterpret_steal<py::object>(THPGenerator_initDefaultGenerator(default_generator())); });
  m.def(
      "lose_device", [] { runtime().stream.lose_device(); }, without_gil,
      "For tests: as if the adapter had been pulled out.");
  m.def("forbid_resizing", [](const at::Storage& storage) { storage.unsafeGetStorageImpl()->set_resizable(false); });
  bind_choices(m);
  bind_kernels(m);
  bind_flex(m);
  bind_tapes(m);
  bind_formulas(m);
  bind_profile(m);
  bind_recurrent(m);
  m.def("time_add", &time_add, py::arg("elements"), py::arg("repeats"), py::arg("dry"));
}
