// _C.Kernel: a kernel from text of the caller's, for torch.webgpu.compile_shader and for torch.compile.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

#include <atomic>

#include "bindings/bindings.h"
#include "families/convolution.h"
#include "families/custom.h"
#include "families/epilogue.h"
#include "families/matmul.h"
#include "ops/attention/attention.h"

namespace py = pybind11;

namespace torch_webgpu {
namespace {

std::vector<at::Tensor> unpack(const std::string& label, const py::sequence& tensors) {
  std::vector<at::Tensor> unpacked;
  unpacked.reserve(tensors.size());
  for (const auto& tensor : tensors) {
    if (!THPVariable_Check(tensor.ptr())) {
      throw py::type_error(label + "() takes tensors, not " +
                           std::string(py::str(py::type::of(tensor).attr("__name__"))));
    }
    unpacked.push_back(THPVariable_Unpack(tensor.ptr()));
  }
  return unpacked;
}

using Words = c10::SmallVector<uint32_t, 64>;

Words unpack(const py::sequence& words) {
  Words unpacked;
  for (const auto& word : words) unpacked.push_back(word.cast<uint32_t>());
  return unpacked;
}

void call(const CustomKernel* kernel, const py::sequence& tensors, const py::sequence& words,
          std::array<uint32_t, 3> grid, bool offsets) {
  const auto operands = unpack(kernel->source.label, tensors);
  const Words values = unpack(words);
  const py::gil_scoped_release release;
  launch_custom(*kernel, operands, values, grid, offsets ? Places::offsets : Places::bindings);
}

// Kernels hold pointers to it, so it is never freed.
struct GivenEpilogue {
  EpilogueText text;
  Epilogue epilogue;
};

template <class Run>
void run_into(const GivenEpilogue* self, const py::sequence& tensors, uint32_t read_only, const py::sequence& words,
              int64_t candidate, const Run& run) {
  const auto operands = unpack(self->text.label, tensors);
  const Words values = unpack(words);
  const py::gil_scoped_release release;
  run(EpilogueCall{self->epilogue, operands, read_only, values, candidate});
}

void multiply(const GivenEpilogue* self, const at::Tensor& a, const at::Tensor& b, const py::sequence& tensors,
              uint32_t read_only, const py::sequence& words, int64_t candidate) {
  run_into(self, tensors, read_only, words, candidate, [&](const EpilogueCall& call) { matmul_into(call, a, b); });
}

using Sizes = std::vector<int64_t>;
using Form = std::array<int64_t, 2>;  // whether it is transposed, and how many groups it has

void convolve_given(const GivenEpilogue* self, const at::Tensor& x, const at::Tensor& weight, const Sizes& sizes,
                    const Sizes& stride, const Sizes& padding, const Sizes& dilation, const Form& form,
                    const py::sequence& tensors, uint32_t read_only, const py::sequence& words, int64_t candidate) {
  run_into(self, tensors, read_only, words, candidate, [&](const EpilogueCall& call) {
    convolve_into(call, Window(stride, padding, dilation, form[1]), form[0] != 0, sizes, x, weight);
  });
}

using OptionalTensor = std::optional<at::Tensor>;

void attend_given(const GivenEpilogue* self, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                  const OptionalTensor& mask, const OptionalTensor& log_sum, const std::array<int64_t, 4>& order,
                  bool causal, std::optional<double> scale, const py::sequence& tensors, uint32_t read_only,
                  const py::sequence& words) {
  const AttentionInto given{query, key,    value, mask.value_or(at::Tensor()), log_sum.value_or(at::Tensor()),
                            order, causal, scale};
  run_into(self, tensors, read_only, words, kChosen, [&](const EpilogueCall& call) { attention_into(call, given); });
}

}  // namespace

void bind_kernels(py::module& m) {
  py::class_<CustomKernel, std::unique_ptr<CustomKernel, py::nodelete>>(m, "Kernel")
      .def(py::init([](std::string label, std::string wgsl, std::string entry_point, uint32_t bindings,
                       uint32_t read_only, uint32_t uniforms, bool wait, TensorPages pages) {
             const py::gil_scoped_release release;
             KernelSource source{std::move(label), std::move(wgsl), std::move(entry_point)};
             const CustomKernel& kernel =
                 custom_kernel(std::move(source), {bindings, read_only, uniforms}, std::move(pages));
             if (wait) finish(kernel);
             return const_cast<CustomKernel*>(&kernel);
           }),
           py::arg("label"), py::arg("wgsl"), py::arg("entry_point"), py::arg("bindings"), py::arg("read_only"),
           py::arg("uniforms") = 1, py::arg("wait") = true, py::arg("pages") = TensorPages{})
      .def("finish", &finish, py::call_guard<py::gil_scoped_release>())
      .def("__call__", &call, py::arg("tensors"), py::arg("words"), py::arg("grid"), py::arg("offsets") = false)
      .def_property_readonly("label", [](const CustomKernel& kernel) { return kernel.source.label; })
      .def_property_readonly("wgsl", [](const CustomKernel& kernel) { return kernel.source.wgsl; });
  py::class_<GivenEpilogue, std::unique_ptr<GivenEpilogue, py::nodelete>>(m, "Epilogue")
      .def(py::init([](std::string label, std::string elements, std::string fours, std::vector<std::string> files,
                       TensorPages pages) {
             static std::atomic<uint32_t> made_so_far{0};
             auto* made = new GivenEpilogue;
             made->text = {std::move(label), std::move(elements), std::move(fours),
                           std::move(files), std::move(pages),    ++made_so_far};
             made->epilogue = {"", "", false, nullptr, &made->text};
             return made;
           }),
           py::arg("label"), py::arg("elements"), py::arg("fours"), py::arg("files"), py::arg("pages"))
      .def("matmul", &multiply, py::arg("a"), py::arg("b"), py::arg("tensors"), py::arg("read_only"), py::arg("words"),
           py::arg("candidate") = kChosen)
      .def("convolution", &convolve_given, py::arg("x"), py::arg("weight"), py::arg("sizes"), py::arg("stride"),
           py::arg("padding"), py::arg("dilation"), py::arg("form"), py::arg("tensors"), py::arg("read_only"),
           py::arg("words"), py::arg("candidate") = kChosen)
      .def("attention", &attend_given, py::arg("query"), py::arg("key"), py::arg("value"), py::arg("mask"),
           py::arg("log_sum"), py::arg("order"), py::arg("causal"), py::arg("scale"), py::arg("tensors"),
           py::arg("read_only"), py::arg("words"));
  m.def("matmul_candidates", &matmul_candidates, py::arg("a"), py::arg("b"));
  m.def(
      "convolution_candidates",
      [](const at::Tensor& x, const at::Tensor& weight, const Sizes& sizes, const Sizes& stride, const Sizes& padding,
         const Sizes& dilation, const Form& form) {
        return convolution_candidates(Window(stride, padding, dilation, form[1]), form[0] != 0, sizes, x, weight);
      },
      py::arg("x"), py::arg("weight"), py::arg("sizes"), py::arg("stride"), py::arg("padding"), py::arg("dilation"),
      py::arg("form"));
  m.def("force_attention", &force_attention, py::arg("name"), "For tests: the kernel that attention takes on a GPU.");
  m.def("force_matmul", &force_matmul, py::arg("name"), "For tests: the kernel that products take on a GPU.");
  m.def("force_convolution", &force_convolution, py::arg("name"),
        "For tests: the tile that convolutions take on a GPU.");
  // Where the bindings and the words of an epilogue begin.
  const auto places = [](uint32_t binding, uint32_t word) { return py::make_tuple(binding, word); };
  m.attr("epilogue_places") = py::dict(py::arg("matmul") = places(kEpilogueBindings, kEpilogueWords),
                                       py::arg("convolution") = places(kEpilogueBindings, kEpilogueWords),
                                       py::arg("attention") = places(0, AttentionParams::kEpilogueWords));
}

}  // namespace torch_webgpu
