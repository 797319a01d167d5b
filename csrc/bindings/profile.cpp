// _C.Profile, for torch.webgpu.profile: a row per dispatch.
#include "runtime/profile.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "bindings/bindings.h"
#include "device/context.h"

namespace py = pybind11;

namespace torch_webgpu {
namespace {

// (kernel, op, grid, bytes, thread, host_begin_ns, host_ns, device_begin_ns, device_ns)
py::list rows(const Profile& profile) {
  py::list list;
  for (const auto& one : profile.dispatches()) {
    list.append(py::make_tuple(*one.label, *one.op, py::make_tuple(one.grid[0], one.grid[1], one.grid[2]), one.bytes,
                               one.thread, one.host_begin_ns, one.host_ns, one.device_begin_ns, one.device_ns));
  }
  return list;
}

}  // namespace

void bind_profile(py::module& m) {
  const auto without_gil = py::call_guard<py::gil_scoped_release>();
  py::class_<Profile>(m, "Profile")
      .def(py::init<>())
      .def("start", &Profile::start, without_gil)
      .def(
          "stop", [](Profile& profile) { waiting([&] { profile.stop(is_open() ? &runtime().stream : nullptr); }); },
          without_gil)
      .def_property_readonly("has_device_times", &Profile::has_device_times)
      .def_property_readonly("rows", &rows);
}

}  // namespace torch_webgpu
