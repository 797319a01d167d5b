// Gives Python the parts of eager kernels: formulas, WGSL files, specialisation by type.
#include "families/formulas.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "bindings/bindings.h"
#include "families/launch.h"
#include "shader/source.h"
#include "shader/wgsl_text.h"

namespace py = pybind11;

namespace torch_webgpu {
namespace {

Compute compute_named(const std::string& name) {
  for (const auto type : {Compute::f32, Compute::i32, Compute::i64, Compute::boolean}) {
    if (name == torch_webgpu::name(type)) return type;
  }
  throw py::value_error("there is no compute type '" + name + "': f32, i32, i64 or bool");
}

py::dict formulas() {
  py::dict result;
  for (const auto& [op, row] : listed_formulas()) {
    py::dict entry;
    entry["formula"] = row->formula;
    entry["scalars"] = row->scalars;
    entry["returns_bool"] = (row->flags & PointwiseRow::returns_bool) != 0;
    entry["floats_only"] = (row->flags & kFloats) != 0;
    entry["library"] = row->library ? py::object(py::str(row->library)) : py::none();
    result[py::str(op)] = entry;
  }
  return result;
}

}  // namespace

void bind_formulas(py::module& m) {
  m.def("formulas", &formulas, "The pointwise formulas of eager kernels by op and overload, or by stub.");
  m.def(
      "specialise",
      [](const std::string& formula, const std::string& type, const std::string& library) {
        return specialise(formula, compute_named(type), library);
      },
      py::arg("formula"), py::arg("type"), py::arg("library") = "",
      "A formula with the functions of a compute type: add(a, b) -> add_i64(a, b).");
  m.def(
      "wgsl", [](const std::string& name) { return wgsl_file(name).text; }, py::arg("name"),
      "The text of a file below wgsl/.");
  m.def(
      "wgsl_needs",
      [](const std::string& name) {
        const auto& needs = wgsl_file(name).needs;
        return std::vector<std::string_view>(needs.begin(), needs.end());
      },
      py::arg("name"), "The files that a file below wgsl/ builds on.");
  m.def("target", [] {
    const Target& traits = target();
    py::dict result;
    result["workgroup"] = traits.workgroup;
    result["subgroup"] = traits.subgroup;
    result["subgroup_directive"] = traits.subgroup_directive;
    result["software"] = traits.software;
    result["max_binding_bytes"] = max_binding_bytes();
    return result;
  });
}

}  // namespace torch_webgpu
