// Each file of this folder adds one of these groups of functions to torch_webgpu._C.
#pragma once
#include <pybind11/pybind11.h>

namespace torch_webgpu {

void bind_choices(pybind11::module& m);
void bind_kernels(pybind11::module& m);
void bind_flex(pybind11::module& m);
void bind_tapes(pybind11::module& m);
void bind_formulas(pybind11::module& m);
void bind_profile(pybind11::module& m);
void bind_recurrent(pybind11::module& m);

}  // namespace torch_webgpu
