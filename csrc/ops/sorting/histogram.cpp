// Counting by value: bincount, histc, histogram and histogramdd. PyTorch's own functions check and make edges, and call
// the stubs that are registered here.
#include <ATen/Context.h>
#include <ATen/native/Histogram.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_histogramdd_bin_edges_native.h>
#include <ATen/ops/_histogramdd_from_bin_cts_native.h>
#include <ATen/ops/_histogramdd_from_bin_tensors_native.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/amin.h>
#include <ATen/ops/histc_native.h>
#include <ATen/ops/histogram_native.h>
#include <ATen/ops/stack.h>
#include <torch/library.h>

#include "families/program.h"
#include "families/tensor.h"
#include "ops/native.h"

namespace torch_webgpu {
namespace {

constexpr Program kPlace =
    make_program("histogram", "histogram_place", "T:input T:edges u:index!", "bins dimensions dimension");
constexpr Program kCount = make_program("histogram", "histogram", "u:index T:weights a:counts!", "bins");

at::Tensor zeros(at::IntArrayRef sizes, at::ScalarType dtype) {
  at::Tensor result = empty_tensor(sizes, {}, dtype);
  return result.zero_();
}

// Sums of `weights` where defined, else counts, of the bins in the int32 `index`.
at::Tensor count(const at::Tensor& index, const at::Tensor& weights, int64_t bins) {
  const bool weighted = weights.defined();
  if (weighted) at::Context::alertNotDeterministic("histogram with weights");  // floats, added in any order
  at::Tensor counts = zeros({bins}, weighted ? at::kFloat : at::kInt);
  run(kCount, at::kFloat, {index.numel()}, {index, weighted ? weights.contiguous() : weights, counts}, {bins},
      weighted ? 1 : 0);
  return counts;
}

// The least and the largest elements, on the host after one wait.
std::pair<at::Tensor, at::Tensor> range_of(const at::Tensor& self, at::IntArrayRef dims) {
  const at::Tensor both = at::stack({at::amin(self, dims), at::amax(self, dims)}).cpu();
  return {both[0], both[1]};
}

at::Tensor bincount(const at::Tensor& self, const std::optional<at::Tensor>& weights, int64_t minlength) {
  TORCH_CHECK_NOT_IMPLEMENTED(at::isIntegralType(self.scalar_type(), /*includeBool=*/false),
                              "\"bincount_cpu\" not implemented for '", toString(self.scalar_type()), "'");
  TORCH_CHECK(minlength >= 0, "minlength should be >= 0");
  if (self.dim() == 1 && self.numel() == 0) return zeros({minlength}, at::kLong);
  const char* const refusal = "bincount only supports 1-d non-negative integral inputs.";
  TORCH_CHECK(self.dim() == 1, refusal);
  const auto [least, largest] = range_of(self, {});
  TORCH_CHECK(least.item<int64_t>() >= 0, refusal);
  const bool weighted = weights && weights->defined();
  TORCH_CHECK(!weighted || (weights->dim() == 1 && weights->size(0) == self.size(0)),
              "weights should be 1-d and have the same length as input");
  // Sums of all other weights are float64 on the CPU.
  if (weighted && weights->scalar_type() != at::kFloat) kernel_dtype(at::kDouble, "bincount");
  const int64_t bins = std::max(largest.item<int64_t>() + 1, minlength);
  const at::Tensor counts = count(self.to(at::kInt).contiguous(), weighted ? *weights : at::Tensor(), bins);
  return weighted ? counts : counts.to(at::kLong);
}

void histogramdd(const at::Tensor& self, const std::optional<at::Tensor>& weight, bool density, at::Tensor& hist,
                 const at::TensorList& edges, bool by_division) {
  TORCH_CHECK_NOT_IMPLEMENTED(at::isFloatingType(self.scalar_type()), "\"histogram_cpu\" not implemented for '",
                              toString(self.scalar_type()), "'");
  const int64_t dimensions = self.size(-1), rows = dimensions == 0 ? 0 : self.numel() / dimensions;
  const at::Tensor input = self.contiguous(), index = zeros({rows}, at::kInt);
  const uint32_t rounding = self.scalar_type() == at::kHalf ? 2 : self.scalar_type() == at::kBFloat16 ? 4 : 0;
  for (int64_t dim = 0; dim < dimensions; ++dim) {
    run(kPlace, at::kFloat, {rows}, {input, edges[dim].contiguous(), index}, {edges[dim].numel() - 1, dimensions, dim},
        rounding | (by_division ? 1 : 0));
  }
  const at::Tensor weights = weight && weight->defined() ? weight->reshape({rows}) : at::Tensor();
  hist.copy_(count(index, weights, hist.numel()).view(hist.sizes()));
  if (!density) return;
  hist.div_(hist.sum());
  for (int64_t dim = 0; dim < dimensions; ++dim) {
    std::vector<int64_t> shape(dimensions, 1);
    shape[dim] = edges[dim].numel() - 1;
    hist.div_(edges[dim].diff().view(shape));
  }
}

void by_edges(const at::Tensor& self, const std::optional<at::Tensor>& weight, bool density, at::Tensor& hist,
              const at::TensorList& edges) {
  histogramdd(self, weight, density, hist, edges, false);
}

// The CPU corrects its division by a local search of the edges, which equals searching the edges for the bin.
void by_division(const at::Tensor& self, const std::optional<at::Tensor>& weight, bool density, at::Tensor& hist,
                 const at::TensorList& edges, bool local_search) {
  histogramdd(self, weight, density, hist, edges, !local_search);
}

void outer_edges(const at::Tensor& input, const int64_t count, std::vector<double>& left, std::vector<double>& right) {
  const auto [low, high] = range_of(input, {0});
  for (int64_t i = 0; i < count; ++i) {
    left[i] = low[i].item<double>();
    right[i] = high[i].item<double>();
  }
}

// The bounds that histc counts between. PyTorch's function would read the two ends of the values one by one.
std::pair<double, double> bounds_of(const at::Tensor& self, double low, double high) {
  if (low != high || self.numel() == 0 || !at::isFloatingType(self.scalar_type())) return {low, high};
  const auto [least, largest] = range_of(self, {});
  low = least.item<double>();
  high = largest.item<double>();
  return low == high ? std::pair(low - 1, high + 1) : std::pair(low, high);
}

// Integers, which CUDA counts and the CPU refuses: models with experts count their tokens so.
at::Tensor& histc_out(const at::Tensor& self, int64_t bins, const at::Scalar& low, const at::Scalar& high,
                      at::Tensor& out) {
  const bool is_integer = at::isIntegralType(self.scalar_type(), /*includeBool=*/false);
  const at::Tensor input = is_integer ? self.to(at::kFloat) : self;
  const auto [from, to] = bounds_of(input, low.toDouble(), high.toDouble());
  if (!is_integer) return at::native::histogram_histc_out(input, bins, from, to, out);
  const at::Tensor counts = at::native::histogram_histc(input, bins, from, to);
  at::native::resize_output(out, counts.sizes());
  return out.copy_(counts);
}

at::Tensor histc(const at::Tensor& self, int64_t bins, const at::Scalar& low, const at::Scalar& high) {
  at::Tensor out = empty_tensor({0}, {}, self.scalar_type());
  return histc_out(self, bins, low, high, out);
}

using Pair = std::tuple<at::Tensor, at::Tensor>;
using PairOut = std::tuple<at::Tensor&, at::Tensor&>;
using Range = std::optional<at::ArrayRef<double>>;
using Weight = std::optional<at::Tensor>;

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  native<&bincount>(library, "bincount");
  native<&histc>(library, "histc");
  native<&histc_out>(library, "histc.out");
  native<static_cast<Pair (*)(const at::Tensor&, const at::Tensor&, const Weight&, bool)>(&at::native::histogram)>(
      library, "histogram.bins_tensor");
  native<static_cast<PairOut (*)(const at::Tensor&, const at::Tensor&, const Weight&, bool, at::Tensor&, at::Tensor&)>(
      &at::native::histogram_out)>(library, "histogram.bins_tensor_out");
  native<static_cast<Pair (*)(const at::Tensor&, int64_t, Range, const Weight&, bool)>(&at::native::histogram)>(
      library, "histogram.bin_ct");
  native<static_cast<PairOut (*)(const at::Tensor&, int64_t, Range, const Weight&, bool, at::Tensor&, at::Tensor&)>(
      &at::native::histogram_out)>(library, "histogram.bin_ct_out");
  native<&at::native::histogramdd_bin_edges>(library, "_histogramdd_bin_edges");
  native<static_cast<at::Tensor (*)(const at::Tensor&, at::IntArrayRef, Range, const Weight&, bool)>(
      &at::native::_histogramdd)>(library, "_histogramdd_from_bin_cts");
  native<static_cast<at::Tensor (*)(const at::Tensor&, at::TensorList, const Weight&, bool)>(
      &at::native::_histogramdd)>(library, "_histogramdd_from_bin_tensors");
}

}  // namespace
}  // namespace torch_webgpu

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(histogramdd_stub, &torch_webgpu::by_edges)
REGISTER_PRIVATEUSE1_DISPATCH(histogramdd_linear_stub, &torch_webgpu::by_division)
REGISTER_PRIVATEUSE1_DISPATCH(histogram_select_outer_bin_edges_stub, &torch_webgpu::outer_edges)
}  // namespace at::native
