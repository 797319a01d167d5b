// Looking values up in a tensor: searchsorted, bucketize, isin.
#include <ATen/native/BucketizationUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/isin_meta.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/result_type.h>
#include <ATen/ops/scalar_tensor.h>
#include <torch/library.h>

#include "families/indexed.h"
#include "families/structured.h"
#include "ops/native.h"

namespace torch_webgpu {
namespace {

// x: boundaries in a row, values that share a row (0: all of them), whether equal ones are passed
#define SEARCH(probe, result)                                     \
  "let value = load1(i1);"                                        \
  "var row = 0u; if (x(1u) > 0u) { row = step / x(1u) * x(0u); }" \
  "var low = 0u; var high = x(0u);"                               \
  "while (low < high) {"                                          \
  "  let middle = low + (high - low) / 2u;"                       \
  "  let found = load2(i2 + row + " probe                         \
  ");"                                                            \
  "  var beyond = !ge(found, value);"                             \
  "  if (x(2u) != 0u) { beyond = !gt(found, value); }"            \
  "  if (beyond) { low = middle + 1u; } else { high = middle; }"  \
  "}"                                                             \
  "return " result ";"
#define SORTED "load3(i3 + row + middle).x"
constexpr IndexedRow kSearch{"searchsorted", SEARCH("middle", "vec2<u32>(low, 0u)"), 0, 3};
constexpr IndexedRow kSearchInt{"searchsorted", SEARCH("middle", "low"), 0, 3};
constexpr IndexedRow kSearchSorter{"searchsorted", SEARCH(SORTED, "vec2<u32>(low, 0u)"), 0, 3};
constexpr IndexedRow kSearchSorterInt{"searchsorted", SEARCH(SORTED, "low"), 0, 3};
constexpr IndexedRow kIsin{"isin",
                           "let value = load1(i1); var found = false;"
                           "for (var k = 0u; k < x(0u) && !found; k++) { found = eq(value, load2(i2 + k)); }"
                           "return u32(found) ^ x(1u);",
                           0, 3};

at::Tensor& searchsorted_out(const at::Tensor& boundaries, const at::Tensor& self, bool out_int32, bool right,
                             std::optional<std::string_view> side, const std::optional<at::Tensor>& given_sorter,
                             at::Tensor& out) {
  const at::Tensor sorter = given_sorter.value_or(at::Tensor());
  at::native::searchsorted_pre_check(boundaries, self, out, out_int32, right, side, sorter);
  at::native::resize_output(out, self.sizes());
  if (self.numel() == 0) return out;
  const bool is_right = side ? *side == "right" : right;
  const at::ScalarType common = at::result_type(boundaries, self);
  const at::Tensor rows = boundaries.to(common).contiguous(), values = self.to(common).contiguous();
  const at::Tensor result = out.is_contiguous() ? out : empty_tensor(out.sizes(), {}, out.scalar_type());
  const bool shared = boundaries.dim() == 1;
  const IndexedRow& row =
      sorter.defined() ? (out_int32 ? kSearchSorterInt : kSearchSorter) : (out_int32 ? kSearchInt : kSearch);
  Indexed launch(row, common);
  launch.iterate({self.numel()}).operand_bits(result, {1}).operand(values, {1}).operand(rows, {0});
  const at::Tensor order = sorter.defined() ? sorter.contiguous() : at::Tensor();
  if (order.defined()) launch.operand(order, {0});
  launch.extra(boundaries.size(-1)).extra(shared ? 0 : self.size(-1)).extra(is_right).run();
  if (!result.is_same(out)) out.copy_(result);
  return out;
}

at::Tensor search(const at::Tensor& boundaries, const at::Tensor& self, bool out_int32, bool right,
                  std::optional<std::string_view> side, const std::optional<at::Tensor>& sorter) {
  at::Tensor out = empty_tensor({0}, {}, out_int32 ? at::kInt : at::kLong);
  return searchsorted_out(boundaries, self, out_int32, right, side, sorter, out);
}

// Promotes as a number does, and float64 stays off the device.
at::Tensor number(const at::Scalar& value) {
  const at::ScalarType type = value.isFloatingPoint() ? at::kFloat : value.isBoolean() ? at::kBool : at::kLong;
  at::Tensor tensor = at::scalar_tensor(value, at::TensorOptions(kDevice).dtype(type));
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

at::Tensor searchsorted_scalar(const at::Tensor& boundaries, const at::Scalar& self, bool out_int32, bool right,
                               std::optional<std::string_view> side, const std::optional<at::Tensor>& sorter) {
  return search(boundaries, number(self), out_int32, right, side, sorter);
}

at::Tensor& searchsorted_scalar_out(const at::Tensor& boundaries, const at::Scalar& self, bool out_int32, bool right,
                                    std::optional<std::string_view> side, const std::optional<at::Tensor>& sorter,
                                    at::Tensor& out) {
  return searchsorted_out(boundaries, number(self), out_int32, right, side, sorter, out);
}

at::Tensor& bucketize_out(const at::Tensor& self, const at::Tensor& boundaries, bool out_int32, bool right,
                          at::Tensor& out) {
  TORCH_CHECK(boundaries.dim() == 1, "boundaries tensor must be 1 dimension, but got dim(", boundaries.dim(), ")");
  return searchsorted_out(boundaries, self, out_int32, right, std::nullopt, std::nullopt, out);
}

at::Tensor search_buckets(const at::Tensor& self, const at::Tensor& boundaries, bool out_int32, bool right) {
  at::Tensor out = empty_tensor({0}, {}, out_int32 ? at::kInt : at::kLong);
  return bucketize_out(self, boundaries, out_int32, right, out);
}

at::Tensor bucketize_scalar(const at::Scalar& self, const at::Tensor& boundaries, bool out_int32, bool right) {
  return search_buckets(number(self), boundaries, out_int32, right);
}

void isin(const at::Tensor& given, const at::Tensor& tests, bool invert, const at::Tensor& out) {
  if (given.numel() == 0) return;
  const at::ScalarType common = at::result_type(given, tests);
  const at::Tensor elements = given.to(common), list = tests.to(common).contiguous();
  const c10::SmallVector<int64_t, 6> still(elements.dim(), 0);
  Indexed(kIsin, common)
      .iterate(elements.sizes())
      .operand_bits(out, out.strides())
      .operand(elements, elements.strides())
      .operand(list, still)
      .extra(list.numel())
      .extra(invert)
      .run();
}

struct IsinTensors {
  static void run(Structured<at::meta::structured_isin_Tensor_Tensor>& op, const at::Tensor& elements,
                  const at::Tensor& tests, bool assume_unique, bool invert) {
    op.meta(elements, tests, assume_unique, invert);
    isin(elements, tests, invert, op.outputs[0]);
  }
};

struct IsinNumber {
  static void run(Structured<at::meta::structured_isin_Tensor_Scalar>& op, const at::Tensor& elements,
                  const at::Scalar& test, bool assume_unique, bool invert) {
    op.meta(elements, test, assume_unique, invert);
    at::Tensor out = op.outputs[0];
    invert ? at::ne_out(out, elements, test) : at::eq_out(out, elements, test);
  }
};

struct NumberIsin {
  static void run(Structured<at::meta::structured_isin_Scalar_Tensor>& op, const at::Scalar& element,
                  const at::Tensor& tests, bool assume_unique, bool invert) {
    op.meta(element, tests, assume_unique, invert);
    at::native::resize_output(op.outputs[0], {});  // the meta says {0}
    isin(number(element), tests, invert, op.outputs[0]);
  }
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  native<&search>(library, "searchsorted.Tensor");
  native<&searchsorted_out>(library, "searchsorted.Tensor_out");
  native<&searchsorted_scalar>(library, "searchsorted.Scalar");
  native<&searchsorted_scalar_out>(library, "searchsorted.Scalar_out");
  native<&search_buckets>(library, "bucketize.Tensor");
  native<&bucketize_out>(library, "bucketize.Tensor_out");
  native<&bucketize_scalar>(library, "bucketize.Scalar");
  native<&Forms<IsinTensors>::out>(library, "isin.Tensor_Tensor_out");
  native<&Forms<IsinNumber>::out>(library, "isin.Tensor_Scalar_out");
  native<&Forms<NumberIsin>::out>(library, "isin.Scalar_Tensor_out");
}

}  // namespace
}  // namespace torch_webgpu
