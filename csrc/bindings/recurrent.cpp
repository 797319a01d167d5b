// _C.recurrent, for torch_webgpu/recurrent.py: whole layers of LSTM, GRU and RNN.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include "bindings/bindings.h"
#include "ops/recurrent/layers.h"

namespace py = pybind11;

namespace torch_webgpu {

void bind_recurrent(py::module& m) {
  m.def(
      "recurrent",
      [](int64_t kind, const at::Tensor& input, const std::vector<at::Tensor>& states,
         const std::vector<at::Tensor>& params, bool has_biases, int64_t layers, double dropout, bool bidirectional,
         bool batch_first) {
        return run_recurrent(
            input, states, params,
            {static_cast<RecurrentKind>(kind), has_biases, layers, dropout, bidirectional, batch_first});
      },
      py::call_guard<py::gil_scoped_release>(), py::arg("kind"), py::arg("input"), py::arg("states"), py::arg("params"),
      py::arg("has_biases"), py::arg("layers"), py::arg("dropout"), py::arg("bidirectional"), py::arg("batch_first"));
}

}  // namespace torch_webgpu
