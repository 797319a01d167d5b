#include "families/indexed.h"

#include <algorithm>

#include "families/number.h"
#include "families/windows.h"

namespace torch_webgpu {
namespace {

KernelSource print(const Launch& launch) {
  const auto spec = spec_of<IndexedSpec>(launch);
  return {label_indexed(spec), print_indexed(spec, target(), pages_of(launch))};
}

// A tensor without elements is never read, so any buffer may be bound for it.
const Buffer* nothing() {
  static const auto* tensor = new at::Tensor(empty_tensor({4}, {}, at::kInt));
  return buffer_of(*tensor);
}

}  // namespace

c10::SmallVector<int64_t, 6> dense_strides(at::IntArrayRef sizes) {
  c10::SmallVector<int64_t, 6> strides(sizes.size());
  int64_t stride = 1;
  for (size_t dim = sizes.size(); dim-- > 0; stride *= std::max<int64_t>(sizes[dim], 1)) strides[dim] = stride;
  return strides;
}

Indexed::Indexed(const IndexedRow& row, at::ScalarType compute) : row_(row), compute_(compute) {}

Indexed& Indexed::iterate(const at::TensorIteratorBase& iterator) {
  sizes_.assign(iterator.shape().begin(), iterator.shape().end());
  for (int i = 0; i < iterator.ntensors(); ++i) {
    const at::TensorBase& tensor = iterator.tensor_base(i);
    const auto bytes = static_cast<int64_t>(iterator.element_size(i));
    const bool is_raw = i < row_.values && (row_.flags & IndexedRow::raw);
    add(tensor, is_raw ? raw_element(bytes) : element_of(kernel_dtype(tensor.scalar_type(), row_.name)), {}, 0);
    for (const int64_t stride : iterator.strides(i)) operands_.back().strides.push_back(stride / bytes);
  }
  return *this;
}

Indexed& Indexed::iterate(at::IntArrayRef sizes) {
  sizes_.assign(sizes.rbegin(), sizes.rend());
  return *this;
}

Indexed& Indexed::add(const at::TensorBase& tensor, Element element, at::IntArrayRef strides, int64_t offset) {
  TORCH_CHECK(tensor.device().type() == kDeviceType,
              "Expected all tensors to be on the same device, but found at least two devices, webgpu:0 and ",
              tensor.device(), "!");
  const Buffer* buffer = buffer_of(tensor);
  TORCH_CHECK_NOT_IMPLEMENTED(operands_.size() < kMaxIndexedOperands, "webgpu: ", row_.name, ": more than ",
                              kMaxIndexedOperands - row_.values, " index tensors");
  const uint64_t bytes = buffer ? tensor.storage().nbytes() : 16;
  operands_.push_back({buffer ? buffer : nothing(), bytes, element, tensor.storage_offset() + offset, {}});
  operands_.back().strides.assign(strides.rbegin(), strides.rend());
  return *this;
}

Indexed& Indexed::operand(const at::Tensor& tensor, at::IntArrayRef strides, int64_t offset) {
  const Element element = row_.flags & IndexedRow::raw ? raw_element(tensor.element_size())
                                                       : element_of(kernel_dtype(tensor.scalar_type(), row_.name));
  return add(tensor, element, strides, offset);
}

Indexed& Indexed::operand_bits(const at::Tensor& tensor, at::IntArrayRef strides) {
  return add(tensor, raw_element(tensor.element_size()), strides, 0);
}

Indexed& Indexed::index(const at::Tensor& tensor, at::IntArrayRef strides, int64_t size, int64_t stride,
                        int64_t dimension) {
  add(tensor, element_of(kernel_dtype(tensor.scalar_type(), row_.name)), strides, 0);
  return index(size, stride, dimension);
}

Indexed& Indexed::index(int64_t size, int64_t stride, int64_t dimension) {
  targets_.push_back({size, stride, dimension});
  return *this;
}

Indexed& Indexed::extra(int64_t word) {
  extra_.push_back(static_cast<uint32_t>(word));
  return *this;
}

Indexed& Indexed::scalar(const at::Scalar& value, at::ScalarType dtype) {
  uint32_t words[2] = {};
  write_scalar(words, compute_type(kernel_dtype(dtype, row_.name)), value);
  return extra(words[0]).extra(words[1]);
}

Indexed& Indexed::bits(const at::Scalar& value, at::ScalarType dtype) {
  const Number number = number_of(value, dtype);
  for (uint32_t i = 0; i < std::max(2u, number.size_bytes / 4); ++i) extra(number.words[i]);
  return *this;
}

int64_t Indexed::steps() const {
  int64_t count = 1;
  for (const int64_t size : sizes_) count *= size;
  return count;
}

// Joins neighbouring dimensions that every operand walks as one.
void Indexed::merge() {
  if (!(row_.flags & IndexedRow::merges)) return;
  size_t kept = 0;
  for (size_t dim = 0; dim < sizes_.size(); ++dim) {
    if (sizes_[dim] == 1) continue;
    const bool joins = kept > 0 && std::all_of(operands_.begin(), operands_.end(), [&](const Operand& operand) {
                         return operand.strides[dim] == operand.strides[kept - 1] * sizes_[kept - 1];
                       });
    if (joins) {
      sizes_[kept - 1] *= sizes_[dim];
      continue;
    }
    sizes_[kept] = sizes_[dim];
    for (Operand& operand : operands_) operand.strides[kept] = operand.strides[dim];
    ++kept;
  }
  sizes_.resize(kept);
  for (Operand& operand : operands_) operand.strides.resize(kept);
}

// Several neighbours move as one element of up to 16 bytes where every value operand walks them by one, the indices
// stand still, and nothing begins in the middle.
void Indexed::widen() {
  if (!(row_.flags & IndexedRow::runs) || sizes_.empty()) return;
  const auto bytes = static_cast<int64_t>(size_bytes(operands_[0].element));
  for (int64_t wide = 16; wide > bytes; wide /= 2) {
    const int64_t run = wide / bytes;
    const auto fits = [&](int64_t value) { return value % run == 0; };
    bool possible = fits(sizes_[0]) && (wide >= 4);
    for (size_t i = 0; i < operands_.size() && possible; ++i) {
      const auto& [buffer, storage_bytes, element, offset, strides] = operands_[i];
      if (i >= row_.values) {
        possible = strides[0] == 0;
        continue;
      }
      possible = strides[0] == 1 && fits(offset) && std::all_of(strides.begin() + 1, strides.end(), fits);
    }
    for (const Target& target : targets_) possible = possible && fits(target.stride);
    if (!possible) continue;
    sizes_[0] /= run;
    for (size_t i = 0; i < row_.values; ++i) {
      operands_[i].element = raw_element(wide);
      operands_[i].offset /= run;
      for (size_t dim = 1; dim < sizes_.size(); ++dim) operands_[i].strides[dim] /= run;
    }
    for (Target& target : targets_) target.stride /= run;
    return;
  }
}

bool Indexed::is_dense(const Operand& operand) const {
  int64_t expected = 1;
  for (size_t dim = 0; dim < sizes_.size(); ++dim) {
    if (sizes_[dim] != 1 && operand.strides[dim] != expected) return false;
    expected *= sizes_[dim];
  }
  return true;
}

// About: as many elements as there are steps, but no more than an operand has. 0 where the body reads as it likes.
uint64_t Indexed::bytes_moved() const {
  if (row_.flags & IndexedRow::acts || row_.library) return 0;
  uint64_t total = 0;
  for (const Operand& operand : operands_) {
    total += std::min<uint64_t>(steps() * size_bytes(operand.element), operand.storage_bytes);
  }
  return total;
}

void Indexed::run() {
  if (steps() == 0) return;
  merge();
  widen();
  const int64_t elements = steps();
  TORCH_CHECK(elements < (int64_t{1} << 32), "webgpu: ", row_.name, ": more than 2^32 elements");
  IndexedSpec spec{};
  Launch launch;
  spec.row = &row_;
  spec.operand_count = operands_.size();
  spec.index_count = targets_.size();
  spec.rank = sizes_.size();
  spec.compute = static_cast<uint8_t>(compute_type(kernel_dtype(compute_, row_.name)));
  Part parts[kMaxIndexedOperands];  // any element of a storage may be reached
  for (size_t i = 0; i < operands_.size(); ++i) parts[i] = {operands_[i].buffer, 0, operands_[i].storage_bytes, 0};
  bind_pages(row_.name, launch, {parts, operands_.size()}, spec.reports() ? 1 : 0);
  launch.bytes = bytes_moved();
  for (size_t i = 0; i < operands_.size(); ++i) {
    spec.elements |= static_cast<uint32_t>(operands_[i].element) << (4 * i);
    spec.bindings |= parts[i].binding << (4 * i);
    spec.binding_count = std::max<uint32_t>(spec.binding_count, parts[i].binding + 1);
  }
  int64_t steps = elements;
  const auto out_bytes = static_cast<int64_t>(size_bytes(operands_[0].element));
  IndexedStore store = IndexedStore::elements;
  if (out_bytes < 4) {
    if (row_.flags & IndexedRow::acts) {
      store = IndexedStore::exchange;
    } else if (is_dense(operands_[0])) {
      store = IndexedStore::words;
      const int64_t per_word = 4 / out_bytes;
      steps = (elements + operands_[0].offset % per_word + per_word - 1) / per_word;
      const bool whole = !sizes_.empty() && sizes_[0] % per_word == 0 && operands_[0].offset % per_word == 0;
      spec.run = whole ? per_word : 1;
    } else {
      store = IndexedStore::atomics;
    }
  }
  // Four neighbours share one decoding of the index; with one dimension nothing is decoded.
  if (store != IndexedStore::words) {
    spec.run = sizes_.size() > 1 && sizes_[0] % 4 == 0 ? 4 : 1;
    steps /= spec.run;
  }
  spec.store = static_cast<uint8_t>(store);
  spec.still = spec.run > 1 && spec.index_count > 0 &&
               std::all_of(operands_.end() - spec.index_count, operands_.end(),
                           [](const auto& operand) { return operand.strides[0] == 0; });
  const IndexedParams at(spec);
  launch.param_words = at.extra() + kWordsPerIndex * targets_.size() + extra_.size();
  TORCH_CHECK(launch.param_words <= kParamWords, "webgpu: ", row_.name, " has too many dimensions: ", sizes_.size());
  uint32_t* params = launch.params;
  const auto [groups, chunk] = chunks_of(steps, torch_webgpu::target().workgroup);
  launch.grid[0] = groups;
  params[IndexedParams::kReporter] = 0;
  params[IndexedParams::kSteps] = static_cast<uint32_t>(steps);
  params[IndexedParams::kChunk] = chunk;
  params[IndexedParams::kElements] = static_cast<uint32_t>(elements);
  for (size_t dim = 0; dim < sizes_.size(); ++dim) params[at.size(dim)] = static_cast<uint32_t>(sizes_[dim]);
  for (size_t i = 0; i < operands_.size(); ++i) {
    params[at.offset(i)] = static_cast<uint32_t>(operands_[i].offset);
    for (size_t dim = 0; dim < sizes_.size(); ++dim) {
      params[at.stride(i, dim)] = static_cast<uint32_t>(operands_[i].strides[dim]);
    }
  }
  uint32_t* extra = params + at.extra();
  for (const auto& [size, stride, dimension] : targets_) {
    for (const int64_t word : {size, stride, dimension}) *extra++ = static_cast<uint32_t>(word);
  }
  std::copy(extra_.begin(), extra_.end(), extra);
  if (spec.reports()) {
    launch.reports = true;
    bind(launch, &runtime().stream.status());
  }
  set_key(launch, Family::indexed, spec);
  launch.print = &print;
  waiting([&] { runtime().stream.dispatch(launch); });  // dispatch() waits only under TORCH_WEBGPU_SYNC
}

}  // namespace torch_webgpu
