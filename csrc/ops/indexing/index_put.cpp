// Writing by index tensors: index_put_, put_, index_copy, index_fill_.
#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/native/IndexingUtils.h>
#include <ATen/native/TensorAdvancedIndexing.h>
#include <ATen/native/TensorAdvancedIndexingUtils.h>
#include <ATen/ops/index_copy_meta.h>
#include <ATen/ops/index_put.h>

#include "families/accumulate.h"
#include "families/number.h"
#include "families/structured.h"
#include "ops/native.h"

namespace torch_webgpu {
namespace {

#define WRITES "if (valid) { store(at, load1(i1)); }"
constexpr uint8_t kWrites = IndexedRow::raw | IndexedRow::acts | IndexedRow::merges;
constexpr IndexedRow kIndexPut{"index_put_", WRITES, kWrites | IndexedRow::runs | IndexedRow::wraps, 2, 0};
constexpr IndexedRow kPut{"put_", WRITES, kWrites | IndexedRow::wraps, 2, 0};
constexpr IndexedRow kIndexCopy{"index_copy", WRITES, kWrites | IndexedRow::runs, 2, 0};
constexpr IndexedRow kIndexFillTensor{"index_fill_", WRITES, kWrites | IndexedRow::wraps, 2, 0};
#define WRITES_NUMBER "if (valid) { store(at, constant(0u)); }"
constexpr IndexedRow kIndexPutNumber{"index_put_", WRITES_NUMBER, kWrites | IndexedRow::wraps, 1, 0};
constexpr IndexedRow kIndexFill{"index_fill_", WRITES_NUMBER, kWrites | IndexedRow::wraps, 1, 0};
constexpr IndexedRow kIndexPutKeys = destination_row("index_put_", IndexedRow::wraps);
constexpr IndexedRow kPutKeys = destination_row("put_", IndexedRow::wraps);

using Indices = c10::List<std::optional<at::Tensor>>;
using Dims = c10::SmallVector<int64_t, 6>;

// A tensor with its indices side by side: dimensions before, indexed ones, dimensions after.
struct Places {
  Places(at::Tensor tensor, const Indices& given) {
    at::native::checkIndexTensorTypes(given, /*allow_int=*/true);
    auto expanded = at::native::expandTensors(tensor, given, /*ensure_same_device=*/true);
    try {
      expanded = at::expand_outplace(expanded);
    } catch (std::exception&) {
      TORCH_CHECK_INDEX(false, "shape mismatch: indexing tensors could not be broadcast together with shapes ",
                        at::native::shapes_as_str(expanded));
    }
    expanded.resize(tensor.dim());
    if (!at::native::hasContiguousSubspace(expanded)) {
      std::tie(tensor, expanded) = at::native::transposeToFront(tensor, expanded);
    }
    self = tensor;
    for (const auto& index : expanded) {
      if (index.defined()) {
        indices.push_back(index);
      } else if (indices.empty()) {
        ++before;
      }
    }
    if (!indices.empty()) replacement = indices[0].sizes().vec();
    for (size_t i = 0; i < indices.size(); ++i) {
      TORCH_CHECK_INDEX(self.size(before + static_cast<int64_t>(i)) != 0 || indices[i].numel() == 0,
                        "index is out of bounds for dimension with size 0");
    }
    const auto sizes = self.sizes();
    shape.assign(sizes.begin(), sizes.begin() + before);
    shape.insert(shape.end(), replacement.begin(), replacement.end());
    shape.insert(shape.end(), sizes.begin() + before + static_cast<int64_t>(indices.size()), sizes.end());
  }
  int64_t indexed_dim(size_t index) const { return before + static_cast<int64_t>(index); }

  at::Tensor self;
  std::vector<at::Tensor> indices;
  int64_t before = 0;
  std::vector<int64_t> replacement, shape;  // of the indices, and of what they select
};

void write_places(const Places& places, const at::Tensor& value) {
  const auto& self = places.self;
  const int64_t count = static_cast<int64_t>(places.indices.size()), inner = places.replacement.size();
  Dims strides(places.shape.size(), 0);
  for (int64_t d = 0; d < places.before; ++d) strides[d] = self.stride(d);
  for (int64_t d = places.before + count; d < self.dim(); ++d) strides[d - count + inner] = self.stride(d);
  const auto number = known_number(value);
  Indexed launch(number ? kIndexPutNumber : kIndexPut);
  launch.iterate(places.shape).operand(self, strides);
  if (!number) launch.operand(value, value.strides());
  for (size_t i = 0; i < places.indices.size(); ++i) {
    Dims index_strides(places.shape.size(), 0);
    for (int64_t d = 0; d < inner; ++d) index_strides[places.before + d] = places.indices[i].stride(d);
    const int64_t dim = places.indexed_dim(i);
    launch.index(places.indices[i], index_strides, self.size(dim), self.stride(dim), static_cast<int64_t>(i));
  }
  if (number) launch.bits(*number, self.scalar_type());
  launch.run();
}

// Indexed dimensions first, then what each index selects.
void accumulate_places(const Places& places, const at::Tensor& value, Accumulate how) {
  const auto& self = places.self;
  const int64_t count = static_cast<int64_t>(places.indices.size()), inner = places.replacement.size();
  std::vector<int64_t> to_front, value_front;
  for (int64_t i = 0; i < count; ++i) to_front.push_back(places.before + i);
  for (int64_t i = 0; i < inner; ++i) value_front.push_back(places.before + i);
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (d < places.before || d >= places.before + count) to_front.push_back(d);
  }
  for (int64_t d = 0; d < value.dim(); ++d) {
    if (d < places.before || d >= places.before + inner) value_front.push_back(d);
  }
  const at::Tensor front = self.permute(to_front), work = front.contiguous();
  int64_t total = 1, columns = 1;
  for (int64_t d = 0; d < work.dim(); ++d) (d < count ? total : columns) *= work.size(d);
  Destinations destinations{{}, total};
  const Dims still(inner, 0);
  Indexed keys = destination_keys(kIndexPutKeys, destinations, places.replacement, still);
  int64_t stride = total;
  for (int64_t i = 0; i < count; ++i) {
    stride /= std::max<int64_t>(work.size(i), 1);
    keys.index(places.indices[i], places.indices[i].strides(), work.size(i), stride, i);
  }
  keys.run();
  accumulate(how, work, value.permute(value_front).contiguous(), std::move(destinations), columns);
  if (!work.is_same(front)) front.copy_(work);
}

at::Tensor& index_put_(at::Tensor& self, const Indices& indices, const at::Tensor& given, bool accumulate,
                       bool /*unsafe*/) {
  TORCH_CHECK_INDEX(static_cast<int64_t>(indices.size()) <= self.dim(), "too many indices for tensor of dimension ",
                    self.dim(), " (got ", indices.size(), ")");
  if (at::has_internal_overlap(self) == at::MemOverlap::Yes) {
    TORCH_WARN(
        "Use of index_put_ on expanded tensors is deprecated. Please clone() the tensor before performing this "
        "operation. This also applies to advanced indexing e.g. tensor[indices] = tensor");
  }
  if (!accumulate && given.numel() == 1) {
    // PyTorch takes this path for a 0-d value on the CPU only; a 0-d value on the device serves as well.
    static const auto* of_cpu = new at::Tensor(at::detail::empty_cpu({}, at::kFloat));
    const auto [is_mask, mask] = at::native::canDispatchToMaskedFill(self, indices, *of_cpu);
    if (is_mask) {
      const at::Tensor number = given.reshape({});
      return self.masked_fill_(mask, number.is_alias_of(self) ? number.clone() : number);
    }
  }
  const bool is_scalar = given.device() != self.device() && given.numel() == 1 && given.dim() == 0;
  at::Tensor value = is_scalar ? given.to(self.device()) : given;
  at::assert_no_overlap(self, value);
  for (const std::optional<at::Tensor>& index : indices) {
    if (index.has_value() && index->defined()) at::assert_no_overlap(self, *index);
  }
  const Places places(self, indices);
  TORCH_CHECK(at::is_expandable_to(value.sizes(), places.shape), "shape mismatch: value tensor of shape ",
              value.sizes(), " cannot be broadcast to indexing result of shape ", at::IntArrayRef(places.shape));
  TORCH_CHECK(value.scalar_type() == self.scalar_type(),
              "Index put requires the source and destination dtypes match, got ", self.scalar_type(),
              " for the destination and ", value.scalar_type(), " for the source.");
  if (places.indices.empty()) {
    if (accumulate) {
      self.add_(value);
    } else {
      self.copy_(value);
    }
    return self;
  }
  value = value.expand(places.shape);
  if (value.numel() == 0) return self;
  if (accumulate || at::globalContext().deterministicAlgorithms()) {
    accumulate_places(places, value, accumulate ? Accumulate::sum : Accumulate::replace);
  } else {
    write_places(places, value);
  }
  return self;
}

at::Tensor& put_(at::Tensor& self, const at::Tensor& index, const at::Tensor& source, bool accumulates) {
  TORCH_CHECK(index.scalar_type() == at::kLong, "put_(): Expected a long tensor for index, but got ",
              index.scalar_type());
  TORCH_CHECK(self.scalar_type() == source.scalar_type(),
              "put_(): self and source expected to have the same dtype, but got self.dtype = ", self.scalar_type(),
              " and source.dtype = ", source.scalar_type());
  TORCH_CHECK(self.device() == source.device() && self.device() == index.device(),
              "put_(): self, index and source expected to be in the same device, but got self.device = ", self.device(),
              ", index.device = ", index.device(), ", and source.device = ", source.device());
  TORCH_CHECK_INDEX(source.numel() == index.numel(),
                    "put_(): Expected source and index to have the same number of elements, but got source.numel() = ",
                    source.numel(), ", index.numel() = ", index.numel());
  TORCH_CHECK_INDEX(self.numel() > 0 || index.numel() == 0, "put_(): Tried to put elements into an empty tensor");
  at::assert_no_internal_overlap(self);
  at::assert_no_overlap(self, index);
  at::assert_no_overlap(self, source);
  if (index.numel() == 0) return self;
  const at::Tensor work = self.contiguous(), places = index.reshape(-1), values = source.reshape(-1).contiguous();
  if (accumulates || at::globalContext().deterministicAlgorithms()) {
    Destinations destinations{{}, work.numel()};
    destination_keys(kPutKeys, destinations, places.sizes(), {0})
        .index(places, places.strides(), work.numel(), 1, 0)
        .run();
    accumulate(accumulates ? Accumulate::sum : Accumulate::replace, work, values, std::move(destinations), 1);
  } else {
    Indexed(kPut)
        .iterate(places.sizes())
        .operand(work, {0})
        .operand(values, values.strides())
        .index(places, places.strides(), work.numel(), 1, 0)
        .run();
  }
  if (!work.is_same(self)) self.copy_(work);
  return self;
}

// out[..., index[i], ...] = source[..., i, ...], or the scalar where there is none.
void write_along(const IndexedRow& row, const at::Tensor& out, int64_t dim, const at::Tensor& index,
                 const at::Tensor& source, const at::Scalar& value = 0) {
  Dims sizes(out.sizes().begin(), out.sizes().end()), strides(out.strides().begin(), out.strides().end()),
      index_strides(out.dim(), 0);
  sizes[dim] = index.numel();
  strides[dim] = 0;
  index_strides[dim] = index.dim() == 0 ? 0 : index.stride(0);
  Indexed launch(row);
  launch.iterate(sizes).operand(out, strides);
  if (source.defined()) launch.operand(source, source.strides());
  launch.index(index, index_strides, out.size(dim), out.stride(dim), dim);
  if (!source.defined()) launch.bits(value, out.scalar_type());
  launch.run();
}

struct IndexCopy {
  using Op = Structured<at::meta::structured_index_copy>;
  static void run(Op& op, const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& source) {
    const int64_t wrapped = op.meta(self, dim, index, source).dim;
    const at::Tensor& out = op.outputs[0];
    if (!self.is_same(out)) out.copy_(self);
    if (index.numel() == 0 || source.numel() == 0) return;
    at::Tensor target = at_least_1d(out);
    TORCH_CHECK_INDEX(target.size(wrapped) > 0, "index out of range in self");
    if (out.numel() == 0) return;
    const at::Tensor values = at_least_1d(source);
    if (at::globalContext().deterministicAlgorithms()) {  // if an index occurs twice, the last value stays
      c10::List<std::optional<at::Tensor>> indices;
      for (int64_t axis = 0; axis < wrapped; ++axis) indices.push_back(std::nullopt);
      indices.push_back(at_least_1d(index));
      at::index_put_(target, indices, values);
      return;
    }
    write_along(kIndexCopy, target, wrapped, index, values);
  }
};

at::Tensor& fill_along(at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& source,
                       const at::Scalar& value) {
  TORCH_CHECK_INDEX(index.scalar_type() == at::kLong || index.scalar_type() == at::kInt,
                    "index_fill_(): Expected dtype int64/int32 for index.");
  at::assert_no_overlap(self, index);
  if (at::has_internal_overlap(self) == at::MemOverlap::Yes) {
    TORCH_WARN(
        "Use of index_fill_ on expanded tensors is deprecated. Please clone() the tensor before performing this "
        "operation. This also applies to advanced indexing e.g. tensor[mask] = scalar");
  }
  TORCH_CHECK(self.is_complex() || !value.isComplex(),
              "index_fill_(): Converting complex Scalar to non-complex type is not supported");
  const at::Tensor target = at_least_1d(self);
  dim = at::maybe_wrap_dim(dim, target.dim());
  TORCH_CHECK(index.dim() <= 1, "Index has to be a vector/scalar");
  if (index.numel() == 0 || self.numel() == 0) return self;
  Dims sizes(target.sizes().begin(), target.sizes().end());
  sizes[dim] = index.numel();
  write_along(source.defined() ? kIndexFillTensor : kIndexFill, target, dim, index,
              source.defined() ? source.expand(sizes) : source, value);
  return self;
}

at::Tensor& index_fill_scalar_(at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Scalar& value) {
  return fill_along(self, dim, index, {}, value);
}

at::Tensor& index_fill_tensor_(at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& value) {
  TORCH_CHECK(value.dim() == 0, "Only supports 0-dimensional value tensor, but got tensor with ", value.dim(),
              " dimension(s).");
  if (value.is_cpu()) return fill_along(self, dim, index, {}, value.item());
  return fill_along(self, dim, index, value.to(self.scalar_type()), 0);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  native<&index_put_, kAny>(library, "_index_put_impl_");
  native<&put_, kAny>(library, "put_");
  register_forms<Forms<IndexCopy>, kAny>(library, "index_copy", "", "out");
  native<&index_fill_scalar_, kAny>(library, "index_fill_.int_Scalar");
  native<&index_fill_tensor_, kAny>(library, "index_fill_.int_Tensor");
}

}  // namespace
}  // namespace torch_webgpu
