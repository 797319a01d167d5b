#include "families/custom.h"

#include <c10/util/SmallVector.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "families/launch.h"

namespace torch_webgpu {
namespace {

KernelSource print(const Launch& launch) { return static_cast<const CustomKernel*>(launch.context)->source; }

uint64_t round_up(uint64_t value, uint64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

// Where a tensor's elements begin and end, in bytes from the start of its buffer.
struct Span {
  uint64_t begin, end;
};

Span span_of(const at::Tensor& tensor) {
  const auto size = static_cast<uint64_t>(tensor.element_size());
  const uint64_t begin = tensor.storage_offset() * size;
  if (tensor.numel() == 0) return {begin, begin};
  uint64_t last = 0;
  for (int64_t dim = 0; dim < tensor.dim(); ++dim) last += (tensor.size(dim) - 1) * tensor.stride(dim);
  return {begin, begin + (last + 1) * size};
}

constexpr uint64_t kAnySize = ~uint64_t{0};

// A tensor without elements has no buffer; nothing of this one is read.
const at::Tensor& no_elements() {
  static const auto* tensor = new at::Tensor(empty_tensor({4}, {}, at::kInt));
  return *tensor;
}

// A tensor's memory from its first element to its last, as bytes.
at::Tensor bytes_of(const at::Tensor& tensor) {
  const auto [begin, end] = span_of(tensor);
  at::Tensor bytes = empty_tensor({0}, {}, at::kByte);
  bytes.set_(tensor.storage(), static_cast<int64_t>(begin), {static_cast<int64_t>(end - begin)}, {1});
  return bytes;
}

void set_kernel(Launch& launch, const CustomKernel& kernel) {
  launch.key = kernel.key;
  launch.print = &print;
  launch.context = &kernel;
  launch.binding_count = kernel.signature.bindings;
  launch.read_only = kernel.signature.read_only;
  launch.uniforms = kernel.signature.uniforms;
}

}  // namespace

TensorBinder::TensorBinder(const std::string& label, at::TensorList tensors, uint32_t read_only, Places places,
                           at::ArrayRef<uint8_t> pages)
    : label_(label),
      tensors_(tensors),
      read_only_(read_only),
      places_(places),
      pages_(pages),
      limit_(max_binding_bytes()) {
  for (const auto& tensor : tensors) {
    TORCH_CHECK_VALUE(tensor.device() == kDevice, label, "() takes tensors on webgpu:0, but one is on ",
                      tensor.device());
  }
}

void TensorBinder::bind(Launch& launch) {
  launch.binding_count = 0;
  launch.read_only = 0;
  launch.bytes = 0;
  for (size_t i = 0; i < tensors_.size(); ++i) bind(launch, i);
}

void TensorBinder::copy_back() {
  for (const auto& [copy, index] : written_copies_) bytes_of(tensors_[index]).copy_(copy);
}

// Two bindings may share a buffer only if the kernel writes neither of them.
bool TensorBinder::shares_with_written(size_t index) const {
  const Buffer* buffer = buffer_of(tensors_[index]);
  for (size_t other = 0; other < tensors_.size(); ++other) {
    if (other == index || tensors_[other].numel() == 0 || buffer_of(tensors_[other]) != buffer) continue;
    if (writes(other) && !writes(index)) return true;
    if (!writes(other) || !writes(index)) continue;
    const Span one = span_of(tensors_[index]), two = span_of(tensors_[other]);
    TORCH_CHECK_VALUE(two.end <= one.begin || one.end <= two.begin, "webgpu: ", label_, ": arguments ",
                      std::min(index, other), " and ", std::max(index, other),
                      " are both written and overlap in memory");
    if (other < index) return true;
  }
  return false;
}

void TensorBinder::bind(Launch& launch, size_t index) {
  const at::Tensor& tensor = tensors_[index];
  const auto [begin, end] = span_of(tensor);
  launch.bytes += end - begin;
  const bool misplaced = places_ == Places::bindings && begin % kWindowBytes != 0;
  if (begin == end) return bind(launch, index, no_elements(), 0, kAnySize);
  if (misplaced || shares_with_written(index)) {
    const at::Tensor copy = bytes_of(tensor).clone();
    if (writes(index)) {
      written_copies_.emplace_back(copy, index);
    } else {
      copies_.push_back(copy);
    }
    return bind(launch, index, copy, 0, end - begin);
  }
  bind(launch, index, tensor, begin, end);
}

void TensorBinder::bind(Launch& launch, size_t index, const at::Tensor& storage, uint64_t begin, uint64_t end) {
  const Buffer* buffer = buffer_of(storage);
  for (uint32_t page = 0; page < pages_of(index); ++page) {
    launch.read_only |= (read_only_ >> index & 1) << (launch.binding_count + page);
  }
  if (pages_of(index) > 1) return bind_pages(launch, index, *buffer, begin, end);
  const bool whole = end == kAnySize || (places_ == Places::offsets && buffer->size_bytes <= limit_);
  const uint64_t window = whole ? 0 : begin / kWindowBytes, start = window * kWindowBytes;
  Binding& binding = launch.bindings[launch.binding_count++];
  binding = {buffer, static_cast<uint32_t>(window), 0};
  if (!whole) {
    TORCH_CHECK(end - start <= limit_, "webgpu: ", label_, ": a tensor of ", end - begin,
                " bytes exceeds the adapter's maxStorageBufferBindingSize, ", limit_, " bytes");
    // A kernel that reads whole quads may read the last one in full.
    const uint64_t multiple = places_ == Places::offsets ? 16 : 4;
    binding.size_bytes = std::min(round_up(end - start, multiple), buffer->size_bytes - start);
    launch.windowed = true;
  }
  offsets_.push_back(static_cast<uint32_t>((begin - start) / tensors_[index].element_size()));
}

// All pages but the last are as large as a binding may be. Those that a tensor does not reach are of no use, but bound.
void TensorBinder::bind_pages(Launch& launch, size_t index, const Buffer& buffer, uint64_t begin, uint64_t end) {
  const uint64_t start = begin / kWindowBytes * kWindowBytes, count = pages_of(index);
  const uint64_t last = std::min(round_up(std::min(end, buffer.size_bytes), 16), buffer.size_bytes);
  TORCH_CHECK(last - start <= count * limit_, "webgpu: ", label_, ": a tensor of ", end - begin, " bytes exceeds ",
              count, " times the adapter's maxStorageBufferBindingSize, ", limit_, " bytes");
  for (uint64_t page = 0; page < count; ++page) {
    const uint64_t from = start + page * limit_;
    Binding& binding = launch.bindings[launch.binding_count++];
    if (from < last) {
      binding = {&buffer, static_cast<uint32_t>(from / kWindowBytes), std::min(limit_, last - from)};
    } else {
      copies_.push_back(empty_tensor({4}, {}, at::kInt));
      binding = {buffer_of(copies_.back()), 0, 0};
    }
  }
  launch.windowed = true;
  offsets_.push_back(static_cast<uint32_t>((begin - start) / tensors_[index].element_size()));
}

const CustomKernel& custom_kernel(KernelSource source, Signature signature, TensorPages pages) {
  const uint32_t read_only = signature.read_only;
  if (!pages.empty()) {
    signature.bindings = signature.read_only = 0;
    for (size_t i = 0; i < pages.size(); ++i) {
      for (uint32_t page = 0; page < pages[i]; ++page) {
        signature.read_only |= (read_only >> i & 1) << signature.bindings++;
      }
    }
    TORCH_CHECK_VALUE(signature.bindings <= kMaxBindings, source.label, ": too many pages");
  }
  static std::mutex mutex;
  static auto* kernels = new std::unordered_map<std::string, std::unique_ptr<CustomKernel>>;
  const std::string name = source.entry_point + ' ' + std::to_string(signature.bindings) + ' ' +
                           std::to_string(signature.read_only) + ' ' + std::to_string(signature.uniforms) + '\n' +
                           source.wgsl;
  CustomKernel* kernel = nullptr;
  {
    const std::lock_guard lock(mutex);
    auto& entry = (*kernels)[name];
    if (!entry) {
      entry =
          std::make_unique<CustomKernel>(CustomKernel{std::move(source), signature, {}, std::move(pages), read_only});
      entry->key.words = {static_cast<uint64_t>(Family::custom), kernels->size(), 0, 0};
    }
    kernel = entry.get();
  }
  runtime().kernels.get(kernel->key, signature, [&] { return kernel->source; });
  return *kernel;
}

void finish(const CustomKernel& kernel) {
  Launch launch;
  set_kernel(launch, kernel);
  runtime().stream.prepare(launch);
}

void launch_custom(const CustomKernel& kernel, at::TensorList tensors, at::ArrayRef<uint32_t> words,
                   const std::array<uint32_t, 3>& grid, Places places) {
  const size_t expected = kernel.pages.empty() ? kernel.signature.bindings : kernel.pages.size();
  TORCH_CHECK_TYPE(tensors.size() == expected, kernel.source.label, "() takes ", expected, " tensors, but ",
                   tensors.size(), " were given");
  const uint32_t most = runtime().device.limits.maxComputeWorkgroupsPerDimension;
  for (const uint32_t groups : grid) {
    TORCH_CHECK_VALUE(groups <= most, kernel.source.label, "(): ", groups,
                      " workgroups along a dimension are more than the adapter's limit, ", most);
    if (groups == 0) return;
  }
  const bool with_offsets = places == Places::offsets;
  TORCH_CHECK_VALUE(words.size() + (with_offsets ? tensors.size() : 0) <= kParamWords, kernel.source.label,
                    "() passes more than ", kParamWords, " words of numbers");
  Launch launch;
  set_kernel(launch, kernel);
  std::copy(grid.begin(), grid.end(), launch.grid);
  TensorBinder binder(kernel.source.label, tensors, kernel.read_only, places, kernel.pages);
  binder.bind(launch);
  if (with_offsets) {
    std::copy(binder.offsets().begin(), binder.offsets().end(), launch.params);
    launch.param_words = static_cast<uint32_t>(binder.offsets().size());
  }
  std::copy(words.begin(), words.end(), &launch.params[launch.param_words]);
  launch.param_words += words.size();
  runtime().stream.dispatch(launch);
  binder.copy_back();
}

}  // namespace torch_webgpu
