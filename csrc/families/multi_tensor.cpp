#include "families/multi_tensor.h"

#include <algorithm>
#include <bit>

#include "device/storage.h"

namespace torch_webgpu {
namespace {

constexpr uint64_t kMaxGroups = 65535;

// The first word of the key, where the variant has the upper half.
enum : uint64_t { kProgramFamily = 36, kFormulaFamily = 38 };

uint32_t max_bindings() {
  static const uint32_t most = std::min(kMaxBindings, runtime().device.limits.maxStorageBuffersPerShaderStage);
  return most;
}

MultiSpec spec_of(const Launch& launch) {
  MultiSpec spec = MultiSpec::unpack(launch.key.words[2], launch.key.words[3]);
  const auto address = static_cast<uintptr_t>(launch.key.words[1]);
  if (static_cast<uint32_t>(launch.key.words[0]) == kProgramFamily) {
    spec.program = std::bit_cast<const MultiProgram*>(address);
  } else {
    spec.row = std::bit_cast<const PointwiseRow*>(address);
  }
  spec.variant = static_cast<uint32_t>(launch.key.words[0] >> 32);
  return spec;
}

KernelSource print(const Launch& launch) {
  const MultiSpec spec = spec_of(launch);
  return {label_multi(spec), print_multi(spec, target())};
}

bool same_pattern(const MultiSpec& a, const MultiSpec& b) {
  return a.aligned == b.aligned && a.operand_bits() == b.operand_bits() &&
         std::equal(a.operands, a.operands + kMultiOperands, b.operands,
                    [](const auto& x, const auto& y) { return x.single == y.single; });
}

}  // namespace

MultiTensor::MultiTensor(const MultiProgram& program, std::vector<uint32_t> params, uint32_t variant)
    : params_(std::move(params)), bits_(false) {
  spec_.program = &program;
  spec_.variant = variant;
}

MultiTensor::MultiTensor(const PointwiseRow& row, std::vector<uint32_t> params, uint32_t variant, bool bits)
    : params_(std::move(params)), bits_(bits) {
  TORCH_INTERNAL_ASSERT(row.scalars <= 1 && row.words == 0);
  spec_.row = &row;
  spec_.variant = variant;
}

bool MultiTensor::describe(c10::ArrayRef<at::Tensor> operands, uint32_t singles, uint32_t written, MultiSpec& spec,
                           Entry& entry) const {
  uint32_t columns = 0;
  spec.aligned = true;
  for (uint32_t i = 0; i < operands.size(); ++i) {
    if (written >> i & 1) own_memory(operands[i]);
  }
  for (uint32_t i = 0; i < kMultiOperands; ++i) {
    spec.operands[i] = {};
    entry.buffers[i] = nullptr;
    if (i >= operands.size() || !operands[i].defined()) continue;
    const at::Tensor& tensor = operands[i];
    const auto bytes = static_cast<int64_t>(tensor.element_size());
    if (bytes != 4 && bytes != 2) return false;
    const Buffer* buffer = buffer_of(tensor);
    if (tensor.storage().nbytes() > max_binding_bytes()) return false;
    const int64_t offset = (static_cast<const char*>(tensor.const_data_ptr()) - buffer->address) / bytes;
    auto& operand = spec.operands[i];
    operand.single = singles >> i & 1;
    operand.dtype = bits_ ? raw_dtype(static_cast<uint32_t>(bytes))
                          : kernel_dtype(tensor.scalar_type(), spec.row ? spec.row->name : spec.program->name);
    entry.buffers[i] = buffer;
    entry.offsets[i] = static_cast<uint32_t>(offset);
    entry.sizes[i] = operand.single ? 1 : entry.elements;
    if (!operand.single && offset % 4 != 0) spec.aligned = false;
    operand.column = columns;
    for (uint32_t j = 0; j < i; ++j) {
      if (entry.buffers[j] != buffer) continue;
      const auto& other = spec.operands[j];
      if (other.single != operand.single || size_bytes(other.dtype) != size_bytes(operand.dtype)) return false;
      // If one operand is written, the other must have the same offset or not overlap it.
      const bool apart = entry.offsets[j] + entry.sizes[j] <= entry.offsets[i] ||
                         entry.offsets[i] + entry.sizes[i] <= entry.offsets[j];
      if ((written >> i & 1 || written >> j & 1) && !apart && entry.offsets[j] != entry.offsets[i]) return false;
      operand.column = other.column;
      break;
    }
    if (operand.column == columns) ++columns;
  }
  if (spec.aligned) return columns <= max_bindings();
  // Elements smaller than a word share words with what lies beside the tensor.
  for (const auto& operand : spec.operands) {
    if (operand.column != kNoColumn && !operand.single && size_bytes(operand.dtype) < 4) return false;
  }
  return columns <= max_bindings();
}

// Whether the order of this tensor and of one collected before matters.
bool MultiTensor::overlaps(const MultiSpec& spec, const Entry& entry, uint32_t written) const {
  const uint32_t operands = spec_.row ? 4 : kMultiOperands;
  for (uint32_t i = 0; i < operands; ++i) {
    if (!entry.buffers[i]) continue;
    const uint64_t size = size_bytes(spec.operands[i].dtype), begin = entry.offsets[i] * size,
                   end = begin + entry.sizes[i] * size;
    for (const Entry& other : entries_) {
      for (uint32_t j = 0; j < operands; ++j) {
        if (other.buffers[j] != entry.buffers[i] || !((written >> i | written >> j) & 1)) continue;
        // An element that all tensors may write, such as a flag, needs no order.
        if (i == j && spec.operands[i].single && other.offsets[j] == entry.offsets[i]) continue;
        const uint64_t other_size = size_bytes(spec_.operands[j].dtype), other_begin = other.offsets[j] * other_size;
        if (begin < other_begin + other.sizes[j] * other_size && other_begin < end) return true;
      }
    }
  }
  return false;
}

// A tensor that goes on where the last one ended is one with it.
bool MultiTensor::merge(const MultiSpec& spec, const Entry& entry) {
  if (entries_.empty()) return false;
  Entry& last = entries_.back();
  if (last.own != entry.own || spec.operand_bits() != spec_.operand_bits()) return false;
  for (uint32_t i = 0; i < kMultiOperands; ++i) {
    if (last.buffers[i] != entry.buffers[i]) return false;
    const bool single = spec.operands[i].single;
    if (single != spec_.operands[i].single) return false;
    if (entry.buffers[i] && entry.offsets[i] != last.offsets[i] + (single ? 0 : last.elements)) return false;
  }
  if (uint64_t{last.elements} + entry.elements > UINT32_MAX) return false;
  last.elements += entry.elements;
  for (uint32_t i = 0; i < kMultiOperands; ++i) {
    if (!spec.operands[i].single) last.sizes[i] = last.elements;
  }
  return true;
}

// False when the launch being collected has no room for it.
bool MultiTensor::append(const MultiSpec& spec, const Entry& entry) {
  if (entries_.empty()) {
    std::copy(spec.operands, spec.operands + kMultiOperands, spec_.operands);
    spec_.aligned = spec.aligned;
  } else if (!same_pattern(spec, spec_)) {
    return false;
  }
  MultiSpec grown = spec_;
  const Buffer* wanted[kMultiOperands] = {};
  uint32_t bindings = 0;
  for (uint32_t i = 0; i < kMultiOperands; ++i) {
    if (entry.buffers[i]) wanted[spec.operands[i].column] = entry.buffers[i];
  }
  for (uint32_t column = 0; column < kMultiOperands; ++column) {
    const auto& bound = columns_[column];
    grown.counts[column] = static_cast<uint32_t>(bound.size());
    if (wanted[column]) {
      for (uint32_t other = 0; other < kMultiOperands; ++other) {
        const auto& buffers = columns_[other];
        if (other != column && std::find(buffers.begin(), buffers.end(), wanted[column]) != buffers.end()) return false;
      }
      grown.counts[column] += std::find(bound.begin(), bound.end(), wanted[column]) == bound.end();
    }
    bindings += grown.counts[column];
  }
  const MultiParams at(grown);
  if (bindings > max_bindings() || at.table + (entries_.size() + 1) * at.entry > kParamWords) return false;
  for (uint32_t column = 0; column < kMultiOperands; ++column) {
    auto& bound = columns_[column];
    if (grown.counts[column] > bound.size()) bound.push_back(wanted[column]);
    spec_.counts[column] = grown.counts[column];
  }
  entries_.push_back(entry);
  return true;
}

bool MultiTensor::add(c10::ArrayRef<at::Tensor> operands, uint32_t singles, uint32_t written, uint32_t own) {
  TORCH_INTERNAL_ASSERT(operands.size() <= kMultiOperands);
  MultiSpec spec;
  spec.program = spec_.program;
  spec.row = spec_.row;
  Entry entry;
  for (size_t i = 0; i < operands.size() && entry.elements == 0; ++i) {
    if (operands[i].defined() && !(singles >> i & 1)) entry.elements = static_cast<uint32_t>(operands[i].numel());
  }
  entry.own = own;
  if (!describe(operands, singles, written, spec, entry)) return false;
  if (overlaps(spec, entry, written)) flush();
  if (merge(spec, entry)) return true;
  if (!append(spec, entry)) {
    flush();
    TORCH_INTERNAL_ASSERT(append(spec, entry));
  }
  return true;
}

void MultiTensor::flush() {
  if (entries_.empty()) return;
  Launch launch;
  for (const auto& column : columns_) {
    for (const Buffer* buffer : column) launch.bindings[launch.binding_count++] = {buffer, 0, 0};
  }
  uint64_t steps = 0;
  for (const Entry& entry : entries_) {
    steps += (uint64_t{entry.elements} + 3) / 4;
    for (uint32_t i = 0; i < kMultiOperands; ++i) {
      if (entry.buffers[i]) launch.bytes += uint64_t{entry.sizes[i]} * size_bytes(spec_.operands[i].dtype);
    }
  }
  uint64_t chunk = chunk_ ? chunk_ : chunks_of(steps, target().workgroup).chunk, groups = 0;
  const auto chunks = [&](const Entry& entry) { return ((uint64_t{entry.elements} + 3) / 4 + chunk - 1) / chunk; };
  do {
    groups = 0;
    for (const Entry& entry : entries_) groups += chunks(entry);
  } while (groups > kMaxGroups && (chunk *= 2));

  const MultiParams at(spec_);
  uint32_t* words = launch.params;
  words[MultiParams::kTensors] = static_cast<uint32_t>(entries_.size());
  words[MultiParams::kChunk] = static_cast<uint32_t>(chunk);
  std::copy(params_.begin(), params_.end(), &words[MultiParams::kNamed]);
  uint32_t* next = &words[at.table];
  uint64_t first = 0;
  for (const Entry& entry : entries_) {
    next[MultiParams::kFirst] = static_cast<uint32_t>(first);
    next[MultiParams::kLength] = entry.elements;
    first += chunks(entry);
    std::fill_n(&next[MultiParams::kPlaces], at.place_words, 0);
    uint32_t place = 0, present = 0;
    for (uint32_t column = 0; column < kMultiOperands; ++column) {
      if (spec_.counts[column] < 2) continue;
      const Buffer* buffer = nullptr;
      for (uint32_t i = 0; i < kMultiOperands; ++i) {
        if (spec_.operands[i].column == column) buffer = entry.buffers[i];
      }
      const auto& bound = columns_[column];
      const auto index = static_cast<uint32_t>(std::find(bound.begin(), bound.end(), buffer) - bound.begin());
      next[MultiParams::kPlaces + place / MultiParams::kPlacesPerWord] |=
          index << (place % MultiParams::kPlacesPerWord * MultiParams::kPlaceBits);
      ++place;
    }
    for (uint32_t i = 0; i < kMultiOperands; ++i) {
      if (!entry.buffers[i]) continue;
      const bool quads = spec_.aligned && !spec_.operands[i].single;
      next[at.offset(present++)] = quads ? entry.offsets[i] / 4 : entry.offsets[i];
    }
    if (at.own_number) next[at.own_number] = entry.own;
    next += at.entry;
  }
  launch.param_words = static_cast<uint32_t>(next - words);
  launch.grid[0] = static_cast<uint32_t>(groups);
  const auto address =
      spec_.program ? reinterpret_cast<uintptr_t>(spec_.program) : reinterpret_cast<uintptr_t>(spec_.row);
  launch.key.words = {(spec_.program ? kProgramFamily : kFormulaFamily) | uint64_t{spec_.variant} << 32, address,
                      spec_.operand_bits(), spec_.binding_bits()};
  launch.print = &print;
  entries_.clear();
  for (auto& column : columns_) column.clear();
  std::fill_n(spec_.counts, kMultiOperands, 0);
  runtime().stream.dispatch(launch);
}

}  // namespace torch_webgpu
