// Writing along a dimension by an index per element: scatter with all its reductions, scatter_add, scatter_reduce.
#include <ATen/Context.h>
#include <ATen/native/ReductionType.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/scatter_add_meta.h>
#include <ATen/ops/scatter_meta.h>
#include <ATen/ops/scatter_reduce_meta.h>
#include <ATen/ops/zeros_like.h>

#include "families/accumulate.h"
#include "families/structured.h"
#include "ops/native.h"

namespace torch_webgpu {
namespace {

constexpr uint8_t kWrites = IndexedRow::raw | IndexedRow::acts | IndexedRow::merges;
constexpr IndexedRow kScatter{"scatter", "if (valid) { store(at, load1(i1)); }", kWrites | IndexedRow::runs, 2, 0};
constexpr IndexedRow kScatterValue{"scatter", "if (valid) { store(at, constant(0u)); }", kWrites, 1, 0};
constexpr IndexedRow kScatterKeys = destination_row("scatter");

c10::SmallVector<int64_t, 6> standing(const at::Tensor& tensor, int64_t dim) {
  c10::SmallVector<int64_t, 6> strides(tensor.strides().begin(), tensor.strides().end());
  strides[dim] = 0;
  return strides;
}

// out[..., index, ...] = source, or the scalar where there is none.
void write(const at::Tensor& out, int64_t dim, const at::Tensor& index, const at::Tensor& source,
           const at::Scalar& value) {
  Indexed launch(source.defined() ? kScatter : kScatterValue);
  launch.iterate(index.sizes()).operand(out, standing(out, dim));
  if (source.defined()) launch.operand(source, source.strides());
  launch.index(index, index.strides(), out.size(dim), out.stride(dim), dim);
  if (!source.defined()) launch.bits(value, out.scalar_type());
  launch.run();
}

void combine(Accumulate how, const at::Tensor& out, int64_t dim, const at::Tensor& index, const at::Tensor& source,
             bool include_self) {
  const at::Tensor work = out.contiguous();
  Destinations destinations{{}, work.numel()};
  destination_keys(kScatterKeys, destinations, index.sizes(), standing(work, dim))
      .index(index, index.strides(), work.size(dim), work.stride(dim), dim)
      .run();
  at::Tensor values = source;
  for (int64_t d = 0; d < index.dim(); ++d) values = values.narrow(d, 0, index.size(d));
  accumulate(how, work, values.contiguous(), std::move(destinations), 1, include_self, /*rounds=*/false);
  if (!work.is_same(out)) out.copy_(work);
}

Accumulate accumulation(at::native::ReductionType reduction) {
  switch (reduction) {
    case at::native::ReductionType::PROD: return Accumulate::product;
    case at::native::ReductionType::MAX: return Accumulate::maximum;
    case at::native::ReductionType::MIN: return Accumulate::minimum;
    default: return Accumulate::sum;
  }
}

struct Source {
  at::Tensor tensor;
  at::Scalar value = 0;
};

// Runs a scatter after PyTorch's meta checked the arguments. An empty `reduce` replaces the old value.
void scatter(const at::Tensor& self, int64_t dim, const at::Tensor& index, const Source& source, const at::Tensor& out,
             std::optional<std::string_view> reduce, bool new_names, bool include_self) {
  if (!self.is_same(out)) out.copy_(self);
  if (index.numel() == 0) return;
  const at::Tensor target = at_least_1d(out), places = at_least_1d(index);
  dim = at::maybe_wrap_dim(dim, target.dim());
  at::Tensor values = source.tensor.defined() ? at_least_1d(source.tensor) : at::Tensor();
  if (!reduce && !(values.defined() && at::globalContext().deterministicAlgorithms())) {
    return write(target, dim, places, values, source.value);
  }
  if (!values.defined()) values = at::scalar_tensor(source.value, out.options()).expand(places.sizes());
  if (!reduce) return combine(Accumulate::replace, target, dim, places, values, true);
  const auto reduction = at::native::get_operator_enum(*reduce, new_names);
  combine(accumulation(reduction), target, dim, places, values, include_self);
  if (reduction != at::native::ReductionType::MEAN) return;
  at::Tensor count = include_self ? at::ones_like(target) : at::zeros_like(target);
  combine(Accumulate::sum, count, dim, places, at::ones(places.sizes(), target.options()), true);
  count.masked_fill_(count.eq(0), 1);
  if (at::isFloatingType(target.scalar_type())) {
    target.div_(count);
  } else {
    target.div_(count, "floor");
  }
}

Source source_of(const at::Tensor& tensor) { return {tensor}; }
Source source_of(const at::Scalar& value) { return {{}, value}; }

// Reads the arguments that follow the source.
struct Reduce {
  std::optional<std::string_view> name;
  bool new_names = false, include_self = true;
};
Reduce reduce_of() { return {}; }
Reduce reduce_of(std::string_view name) { return {name}; }
Reduce reduce_of(std::string_view name, bool include_self) { return {name, true, include_self}; }

template <class Meta, class Signature = decltype(&Meta::meta)>
struct Scatter;
template <class Meta, class Base, class From, class... Rest>
struct Scatter<Meta, void (Base::*)(const at::Tensor&, int64_t, const at::Tensor&, From, Rest...)> {
  static void run(Structured<Meta>& op, const at::Tensor& self, int64_t dim, const at::Tensor& index, From source,
                  Rest... rest) {
    op.meta(self, dim, index, source, rest...);
    Reduce reduce = reduce_of(rest...);
    if constexpr (std::is_same_v<Meta, at::meta::structured_scatter_add>) reduce.name = "add";
    scatter(self, dim, index, source_of(source), op.outputs[0], reduce.name, reduce.new_names, reduce.include_self);
  }
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  register_forms<Forms<Scatter<at::meta::structured_scatter_src>>, kAny>(library, "scatter", "src", "src_out");
  register_forms<Forms<Scatter<at::meta::structured_scatter_value>>, kAny>(library, "scatter", "value", "value_out");
  register_forms<Forms<Scatter<at::meta::structured_scatter_reduce>>>(library, "scatter", "reduce", "reduce_out");
  register_forms<Forms<Scatter<at::meta::structured_scatter_value_reduce>>>(library, "scatter", "value_reduce",
                                                                            "value_reduce_out");
  register_forms<Forms<Scatter<at::meta::structured_scatter_add>>>(library, "scatter_add", "", "out");
  register_forms<Forms<Scatter<at::meta::structured_scatter_reduce_two>>>(library, "scatter_reduce", "two", "two_out");
}

}  // namespace
}  // namespace torch_webgpu
