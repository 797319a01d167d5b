// _C.FlexAttention: the kernels of attention with a text of functions, for flex_attention under torch.compile.
#include "ops/attention/flex.h"

#include <ATen/ops/empty_strided.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include "bindings/bindings.h"
#include "families/tensor.h"

namespace py = pybind11;

namespace torch_webgpu {
namespace {

using Tensors = std::vector<at::Tensor>;
using OptionalTensor = std::optional<at::Tensor>;
using Strides = std::vector<int64_t>;

// A block mask as the generated module passes it: lists for blocks of queries, for gradients also those for blocks of
// keys, the packed form of all where that is what the text binds, and the sizes of a block.
struct Blocks {
  Tensors of_queries, of_keys;
  OptionalTensor packed;
  std::pair<int64_t, int64_t> sizes;
};

Blocks blocks_of(const py::tuple& given) {
  return {given[0].cast<Tensors>(), given[1].cast<Tensors>(), given[2].cast<OptionalTensor>(),
          given[3].cast<std::pair<int64_t, int64_t>>()};
}

struct Call {
  Call(const ScoreText& text, const py::tuple& given, const Tensors& captured, const std::vector<uint32_t>& words,
       double scale)
      : blocks(blocks_of(given)), sizes{blocks.sizes.first, blocks.sizes.second, scale} {
    const at::Tensor packed = blocks.packed.value_or(at::Tensor());
    of_queries.emplace(Flex{text, blocks.of_queries, packed, captured, words});
    of_keys.emplace(Flex{text, blocks.of_keys, packed, captured, words});
    if (!packed.defined()) return;
    for (const at::Tensor& list : blocks.of_queries) of_keys->first_packed += list.numel();
  }
  Blocks blocks;
  FlexSizes sizes;
  std::optional<Flex> of_queries, of_keys;
};

py::tuple forward(const ScoreText* text, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                  const Strides& strides, const py::tuple& blocks, const Tensors& captured,
                  const std::vector<uint32_t>& words, double scale, bool with_most) {
  const Call call(*text, blocks, captured, words, scale);
  at::Tensor out, log_sum, most;
  {
    const py::gil_scoped_release release;
    const int64_t batches = query.size(0), heads = query.size(1), queries = query.size(2);
    out = empty_tensor({batches, heads, queries, value.size(3)}, strides, query.scalar_type());
    log_sum = empty_tensor({batches, heads, queries}, {}, at::kFloat);
    if (with_most) most = empty_tensor({batches, heads, queries}, {}, at::kFloat);
    flex_forward(*call.of_queries, call.sizes, query, key, value, out, log_sum, most);
  }
  return py::make_tuple(out, log_sum, with_most ? most : log_sum);
}

py::tuple backward(const ScoreText* text, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                   const at::Tensor& out, const at::Tensor& log_sum, const OptionalTensor& grad,
                   const OptionalTensor& log_sum_grad, const std::array<Strides, 3>& strides, const py::tuple& blocks,
                   const Tensors& captured, const std::vector<uint32_t>& words, double scale) {
  const Call call(*text, blocks, captured, words, scale);
  FlexGradients gradients;
  {
    const py::gil_scoped_release release;
    const auto like = [&](const at::Tensor& tensor, const Strides& its) {
      const int64_t sizes[] = {query.size(0), tensor.size(1), tensor.size(2), tensor.size(3)};
      return empty_tensor(sizes, its, tensor.scalar_type());
    };
    gradients = {like(query, strides[0]), like(key, strides[1]), like(value, strides[2])};
    flex_backward(*call.of_queries, *call.of_keys, call.sizes, query, key, value, out, log_sum,
                  grad.value_or(at::Tensor()), log_sum_grad.value_or(at::Tensor()), gradients);
  }
  return py::make_tuple(gradients.query, gradients.key, gradients.value);
}

}  // namespace

void bind_flex(py::module& m) {
  py::class_<ScoreText, std::unique_ptr<ScoreText, py::nodelete>>(m, "FlexAttention")
      .def(py::init([](std::string label, std::string text, std::vector<std::string> files, uint32_t bindings) {
             return const_cast<ScoreText*>(&score_text(std::move(label), std::move(text), std::move(files), bindings));
           }),
           py::arg("label"), py::arg("text"), py::arg("files"), py::arg("bindings"))
      .def("forward", &forward, py::arg("query"), py::arg("key"), py::arg("value"), py::arg("strides"),
           py::arg("blocks"), py::arg("captured"), py::arg("words"), py::arg("scale"), py::arg("with_most"))
      .def("backward", &backward, py::arg("query"), py::arg("key"), py::arg("value"), py::arg("out"),
           py::arg("log_sum"), py::arg("grad"), py::arg("log_sum_grad"), py::arg("strides"), py::arg("blocks"),
           py::arg("captured"), py::arg("words"), py::arg("scale"));
  m.attr("flex_words") = py::int_(uint32_t{AttentionParams::kTextWords});
}

}  // namespace torch_webgpu
