// Counting by value: bincount, histc, histogram.
#include <ATen/native/Resize.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/amin.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include <cmath>

#include "ops/launch.h"
#include "ops/program.h"
#include "ops/tensor.h"

namespace torch_webgpu {
namespace {

constexpr const char* kOperands = "T:input u:weights a:counts! T:edges";

// The caller has checked that all elements are bins.
constexpr Program kBincount =
    make_program("bincount", "histogram", kOperands, "bins", "fn bin_of(a: T) -> u32 { return bitcast<u32>(i32(a)); }");

// Bins of equal width: by division, and with VARIANT's second bit set aside for edges of any width, by halving.
constexpr Program kLinear =
    make_program("histc", "histogram", kOperands, "bins low high",
                 "fn bin_of(a: T) -> u32 {\n"
                 "  let first = bitcast<f32>(low()); let last = bitcast<f32>(high());\n"
                 "  if (!(ge(a, first) && le(a, last))) { return 0xffffffffu; }\n"
                 "  return min(u32((a - first) * f32(bins()) / (last - first)), bins() - 1u);\n}\n");

constexpr Program kEdges =
    make_program("histogram", "histogram", kOperands, "bins",
                 "fn bin_of(a: T) -> u32 {\n"
                 "  if (!(ge(a, load_edges(0u)) && le(a, load_edges(bins())))) { return 0xffffffffu; }\n"
                 "  var first = 0u; var last = bins();\n"
                 "  while (first < last) {\n"
                 "    let middle = (first + last) / 2u;\n"
                 "    if (le(load_edges(middle + 1u), a)) { first = middle + 1u; } else { last = middle; }\n"
                 "  }\n"
                 "  return min(first, bins() - 1u);\n}\n");

at::Tensor zero_counts(int64_t bins, at::ScalarType dtype) {
  at::Tensor counts = empty_tensor({bins}, {}, dtype);
  return counts.zero_();
}

at::Tensor bincount(const at::Tensor& self, const std::optional<at::Tensor>& weights, int64_t minlength) {
  TORCH_CHECK_NOT_IMPLEMENTED(at::isIntegralType(self.scalar_type(), /*includeBool=*/false),
                              "\"bincount_cpu\" not implemented for '", toString(self.scalar_type()), "'");
  TORCH_CHECK(minlength >= 0, "minlength should be >= 0");
  if (self.dim() == 1 && self.numel() == 0) return zero_counts(minlength, at::kLong);
  const char* const refusal = "bincount only supports 1-d non-negative integral inputs.";
  TORCH_CHECK(self.dim() == 1, refusal);
  const bool weighted = weights && weights->defined();
  TORCH_CHECK(!weighted || (weights->dim() == 1 && weights->size(0) == self.size(0)),
              "weights should be 1-d and have the same length as input");
  if (weighted && weights->scalar_type() != at::kFloat) check_storable(at::kDouble);
  TORCH_CHECK(at::amin(self).item<int64_t>() >= 0, refusal);
  const int64_t bins = std::max(at::amax(self).item<int64_t>() + 1, minlength);
  const at::Tensor counts = zero_counts(bins, weighted ? at::kFloat : at::kInt);
  run(kBincount, at::kInt, {self.numel()},
      {self.contiguous(), weighted ? weights->contiguous() : at::Tensor(), counts, {}}, {bins}, weighted ? 1 : 0);
  return weighted ? counts : counts.to(at::kLong);
}

void check_dtype(const at::Tensor& self) {
  TORCH_CHECK_NOT_IMPLEMENTED(at::isFloatingType(self.scalar_type()), "\"histogram_cpu\" not implemented for '",
                              toString(self.scalar_type()), "'");
}

// The bounds given, or those of the elements where none were.
std::pair<double, double> bounds_of(const at::Tensor& self, double low, double high, bool given, const char* op) {
  if (!given && self.numel() > 0) {
    low = at::amin(self).item<double>();
    high = at::amax(self).item<double>();
  }
  TORCH_CHECK(std::isfinite(low) && std::isfinite(high), op, ": range of [", low, ", ", high, "] is not finite");
  if (low == high) {
    low -= 1;
    high += 1;
  }
  return {low, high};
}

int64_t bits_of(double value) {
  const auto number = static_cast<float>(value);
  uint32_t bits = 0;
  std::memcpy(&bits, &number, sizeof(bits));
  return bits;
}

at::Tensor& histc_out(const at::Tensor& self, int64_t bins, const at::Scalar& min, const at::Scalar& max,
                      at::Tensor& out) {
  const double low = min.toDouble(), high = max.toDouble();
  check_dtype(self);
  TORCH_CHECK(bins > 0, "torch.histogram(): bins must be > 0, but got ", bins, " for dimension 0");
  TORCH_CHECK(low <= high, "torch.histc: max must be larger than min");
  const auto [first, last] = bounds_of(self, low, high, low != high, "torch.histc");
  at::native::resize_output(out, {bins});
  const at::Tensor counts = zero_counts(bins, at::kInt);
  run(kLinear, at::kFloat, {self.numel()}, {self.contiguous(), {}, counts, {}}, {bins, bits_of(first), bits_of(last)});
  out.copy_(counts);
  return out;
}

at::Tensor histc(const at::Tensor& self, int64_t bins, const at::Scalar& min, const at::Scalar& max) {
  at::Tensor out = empty_tensor({0}, {}, self.scalar_type());
  return histc_out(self, bins, min, max, out);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("bincount", &bincount);
  library.impl("histc", &histc);
  library.impl("histc.out", &histc_out);
}

}  // namespace
}  // namespace torch_webgpu
