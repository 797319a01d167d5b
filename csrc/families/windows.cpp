#include "families/windows.h"

#include <c10/util/Exception.h>
#include <c10/util/SmallVector.h>
#include <c10/util/StringUtil.h>

#include <algorithm>

namespace torch_webgpu {
namespace {

constexpr uint64_t kMaxPages = 16;        // per array: four bits of the key
constexpr uint64_t kMaxPagedArrays = 14;  // the arrays that the key has room for

}  // namespace

Part part_of(const at::Tensor& tensor) {
  const Buffer* buffer = buffer_of(tensor);
  if (!buffer || tensor.numel() == 0) return {buffer, 0, 0, 0};
  int64_t last = 0;
  for (int64_t dim = 0; dim < tensor.dim(); ++dim) last += (tensor.size(dim) - 1) * tensor.stride(dim);
  const uint64_t bytes = tensor.element_size(), begin = tensor.storage_offset() * bytes;
  return {buffer, begin, begin + (last + 1) * bytes, 0};
}

bool bind_parts(Launch& launch, std::span<Part> parts) {
  const uint64_t limit = max_binding_bytes();
  launch.bytes = 0;
  for (const Part& part : parts) launch.bytes += part.end - part.begin;
  const auto is_whole = [&](const Part& part) { return !part.buffer || part.buffer->size_bytes <= limit; };
  if (std::all_of(parts.begin(), parts.end(), is_whole)) [[likely]] {
    for (Part& part : parts) {
      if (part.buffer) part.binding = bind(launch, part.buffer);
      part.begin = 0;
    }
    return true;
  }
  for (Part& part : parts) {
    if (!part.buffer) continue;
    part.begin = is_whole(part) ? 0 : part.begin & ~(kWindowBytes - 1);
    part.end = is_whole(part) ? part.buffer->size_bytes : (part.end + 15) & ~uint64_t{15};
    if (part.end - part.begin > limit) return false;
  }
  for (bool joined = true; joined;) {
    joined = false;
    for (Part& part : parts) {
      for (Part& other : parts) {
        if (!part.buffer || part.buffer != other.buffer) continue;
        if (part.begin == other.begin && part.end == other.end) continue;
        const uint64_t begin = std::min(part.begin, other.begin), end = std::max(part.end, other.end);
        const bool overlap = part.begin < other.end && other.begin < part.end;
        if (end - begin > limit) {
          if (overlap) return false;
          continue;
        }
        part.begin = other.begin = begin;
        part.end = other.end = end;
        joined = true;
      }
    }
  }
  launch.windowed = true;
  for (Part& part : parts) {
    if (!part.buffer) continue;
    const auto window = static_cast<uint32_t>(part.begin / kWindowBytes);
    uint32_t index = 0;
    while (index < launch.binding_count &&
           (launch.bindings[index].buffer != part.buffer || launch.bindings[index].window != window)) {
      ++index;
    }
    if (index == launch.binding_count)
      launch.bindings[launch.binding_count++] = {part.buffer, window, part.end - part.begin};
    part.binding = index;
  }
  return true;
}

void bind_pages(const char* op, Launch& launch, std::span<Part> parts, uint32_t reserved) {
  if (bind_parts(launch, parts)) return;
  const uint64_t limit = max_binding_bytes();
  struct Array {
    const Buffer* buffer;
    uint64_t begin, end;
  };
  c10::SmallVector<Array, 8> arrays;
  const uint32_t first = launch.binding_count;  // what is bound already counts as an array each
  for (Part& part : parts) {
    if (!part.buffer) continue;
    part.binding = 0;
    while (part.binding < arrays.size() && arrays[part.binding].buffer != part.buffer) ++part.binding;
    if (part.binding == arrays.size()) arrays.push_back({part.buffer, ~uint64_t{0}, 0});
    Array& array = arrays[part.binding];
    array.begin = std::min(array.begin, part.begin & ~(kWindowBytes - 1));
    array.end = std::max(array.end, (part.end + 15) & ~uint64_t{15});
  }
  uint64_t more = 0, bindings = first + reserved, largest = 0;
  for (size_t i = 0; i < arrays.size(); ++i) {
    const uint64_t bytes = arrays[i].end - arrays[i].begin, count = std::max<uint64_t>((bytes + limit - 1) / limit, 1);
    largest = std::max(largest, bytes);
    bindings += count;
    if (count > kMaxPages || first + i >= kMaxPagedArrays) {
      bindings = kMaxBindings + 1;
    } else {
      more |= (count - 1) << (4 * (first + i));
    }
  }
  const uint32_t most = std::min(kMaxBindings, runtime().device.limits.maxStorageBuffersPerShaderStage);
  TORCH_CHECK(bindings <= most, "webgpu: ", op, ": a tensor of ", largest,
              " bytes takes more bindings than the adapter has: ", most, " of ", limit,
              " bytes (maxStorageBuffersPerShaderStage and maxStorageBufferBindingSize)");
  for (const Array& array : arrays) {
    for (uint64_t begin = array.begin; begin == array.begin || begin < array.end; begin += limit) {
      launch.bindings[launch.binding_count++] = {array.buffer, static_cast<uint32_t>(begin / kWindowBytes),
                                                 std::min(limit, array.end - begin)};
    }
  }
  for (Part& part : parts) {
    if (!part.buffer) continue;
    part.begin = arrays[part.binding].begin;
    part.binding += first;
  }
  launch.windowed = true;
  launch.key.words[0] |= more << 8;
}

bool fits_binding(const at::Tensor& tensor) {
  if (!tensor.defined()) return true;
  Launch scratch;
  Part part = part_of(tensor);
  return bind_parts(scratch, {&part, 1});
}

int64_t widest_dim(const at::Tensor& tensor, int64_t fixed) {
  int64_t widest = -1, extent = 0;
  for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
    const int64_t spans = (tensor.size(dim) - 1) * tensor.stride(dim);
    if (dim == fixed || spans <= extent) continue;
    widest = dim;
    extent = spans;
  }
  return widest;
}

const at::Tensor& widest(at::ArrayRef<at::Tensor> tensors) {
  const auto bytes = [](const at::Tensor& tensor) {
    const Part part = tensor.defined() ? part_of(tensor) : Part();
    return part.end - part.begin;
  };
  return *std::max_element(tensors.begin(), tensors.end(),
                           [&](const at::Tensor& a, const at::Tensor& b) { return bytes(a) < bytes(b); });
}

int64_t half_of(int64_t size) { return size < 128 ? (size + 1) / 2 : (size / 2 + 63) / 64 * 64; }

void throw_too_large(const char* op, const at::Tensor& tensor) {
  C10_THROW_ERROR(Error, c10::str("webgpu: ", op, ": a tensor of ", tensor.storage().nbytes(),
                                  " bytes is larger than the adapter's maxStorageBufferBindingSize, ",
                                  max_binding_bytes(), " bytes"));
}

}  // namespace torch_webgpu
