#include "families/multi_tensor.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "device/storage.h"

namespace torch_webgpu {
namespace {

constexpr uint64_t kMaxGroups = 65535;
static_assert(kMultiParamWords <= kTableWords);

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
                    [](const auto& x, const auto& y) { return x.single == y.single && x.written == y.written; });
}

std::mutex& mutex() {
  static auto* const mutex = new std::mutex;
  return *mutex;
}

// What a launch binds for a buffer.
const Buffer* bound_of(const Buffer& buffer) {
  const bool alone = !buffer.segment || runtime().stream.recording();
  return alone ? &buffer : &buffer.segment->whole;
}

// Where it pays, that is for small buffers.
void gather(const at::Tensor& tensor, bool overwritten) {
  const Buffer* buffer = buffer_of(tensor);
  if (buffer->segment || runtime().stream.recording()) return;
  const bool all =
      overwritten && tensor.numel() * tensor.element_size() == static_cast<int64_t>(tensor.storage().nbytes());
  runtime().pool.gather(const_cast<Buffer&>(*buffer), max_binding_bytes(), /*keeps_contents=*/!all);
}

}  // namespace

size_t SeenBuffers::index_of(const Buffer* buffer) const {
  const size_t mask = table_.size() - 1;
  size_t index = (reinterpret_cast<uintptr_t>(buffer) * 0x9E3779B97F4A7C15ull >> 32) & mask;
  while (table_[index].buffer && table_[index].buffer != buffer) index = (index + 1) & mask;
  return index;
}

void SeenBuffers::add(const Buffer* buffer, bool is_written) {
  Seen& seen = table_[index_of(buffer)];
  seen.is_written |= is_written;
  if (seen.buffer) return;
  seen.buffer = buffer;
  if (++count_ * 2 <= table_.size()) return;
  const std::vector<Seen> all = std::exchange(table_, std::vector<Seen>(table_.size() * 2));
  for (const Seen& old : all) {
    if (old.buffer) table_[index_of(old.buffer)] = old;
  }
}

void SeenBuffers::clear() {
  if (count_ > 0) std::fill(table_.begin(), table_.end(), Seen());
  count_ = 0;
}

MultiTensor::MultiTensor(const MultiProgram& program, std::vector<uint32_t> params, uint32_t variant)
    : lock_(mutex()), params_(std::move(params)), bits_(false) {
  spec_.program = &program;
  spec_.variant = variant;
}

MultiTensor::MultiTensor(const PointwiseRow& row, std::vector<uint32_t> params, uint32_t variant, bool bits)
    : lock_(mutex()), params_(std::move(params)), bits_(bits) {
  TORCH_INTERNAL_ASSERT(row.scalars <= 1 && row.words == 0);
  spec_.row = &row;
  spec_.variant = variant;
}

bool MultiTensor::describe(c10::ArrayRef<at::Tensor> operands, const Roles& roles, MultiSpec& spec,
                           Entry& entry) const {
  uint32_t columns = 0;
  uint64_t begins[kMultiOperands] = {}, ends[kMultiOperands] = {};
  bool in_segment[kMultiOperands] = {};
  spec.aligned = true;
  for (uint32_t i = 0; i < kMultiOperands; ++i) {
    spec.operands[i] = {};
    entry.buffers[i] = nullptr;
    if (i >= operands.size() || !operands[i].defined()) continue;
    const at::Tensor& tensor = operands[i];
    const auto bytes = static_cast<uint32_t>(tensor.element_size());
    const Buffer* buffer = buffer_of(tensor);
    const Buffer* bound = bound_of(*buffer);
    const uint64_t begin =
        static_cast<const char*>(tensor.const_data_ptr()) - buffer->address + (bound == buffer ? 0 : buffer->offset);
    auto& operand = spec.operands[i];
    operand.single = roles.singles >> i & 1;
    operand.written = roles.written >> i & 1;
    operand.dtype =
        bits_ ? raw_dtype(bytes) : kernel_dtype(tensor.scalar_type(), spec.row ? spec.row->name : spec.program->name);
    entry.buffers[i] = bound;
    entry.offsets[i] = static_cast<uint32_t>(begin / bytes);
    entry.sizes[i] = operand.single ? 1 : entry.elements;
    if (!operand.single && entry.offsets[i] % 4 != 0) spec.aligned = false;
    begins[i] = begin;
    ends[i] = begin + uint64_t{entry.sizes[i]} * bytes;
    in_segment[i] = bound != buffer;
    operand.column = columns;
    for (uint32_t j = i; j-- > 0;) {
      if (!entry.buffers[j]) continue;
      const auto& other = spec.operands[j];
      if (bound == entry.buffers[j] && (operand.written || other.written)) {
        // One of them is written: the other must be the same elements, or lie elsewhere.
        const bool same = begins[i] == begins[j] && other.dtype == operand.dtype && other.single == operand.single;
        if (!same && begins[i] < ends[j] && begins[j] < ends[i]) return false;
      }
      if (bound == entry.buffers[j] || (in_segment[i] && in_segment[j])) operand.column = other.column;
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

// Tensors of different buffers, which most are, need no look at their elements.
bool MultiTensor::may_overlap(c10::ArrayRef<at::Tensor> operands, uint32_t written) const {
  for (uint32_t i = 0; i < operands.size(); ++i) {
    if (!operands[i].defined()) continue;
    const auto& seen = seen_.find(buffer_of(operands[i]));
    if (seen.buffer && (seen.is_written || (written >> i & 1))) return true;
  }
  return false;
}

// Whether the order of this tensor and of one added before matters.
bool MultiTensor::overlaps(const MultiSpec& spec, const Entry& entry) const {
  const uint32_t operands = spec_.row ? 4 : kMultiOperands;
  const auto overlaps_with = [&](const MultiSpec& other_spec, const Entry& other) {
    for (uint32_t i = 0; i < operands; ++i) {
      if (!entry.buffers[i]) continue;
      const uint64_t size = size_bytes(spec.operands[i].dtype), begin = entry.offsets[i] * size,
                     end = begin + entry.sizes[i] * size;
      for (uint32_t j = 0; j < operands; ++j) {
        if (other.buffers[j] != entry.buffers[i]) continue;
        if (!spec.operands[i].written && !other_spec.operands[j].written) continue;
        // An element that all tensors may write, such as a flag, needs no order.
        if (i == j && spec.operands[i].single && other.offsets[j] == entry.offsets[i]) continue;
        const uint64_t other_size = size_bytes(other_spec.operands[j].dtype),
                       other_begin = other.offsets[j] * other_size;
        if (begin < other_begin + other.sizes[j] * other_size && other_begin < end) return true;
      }
    }
    return false;
  };
  return std::any_of(groups_.begin(), groups_.end(), [&](const Group& group) {
    return std::any_of(group.entries.begin(), group.entries.end(),
                       [&](const Entry& other) { return overlaps_with(group.spec, other); });
  });
}

// A tensor that goes on where the last one ended is one with it.
bool MultiTensor::merge(Group& group, const Entry& entry) {
  if (group.entries.empty()) return false;
  Entry& last = group.entries.back();
  if (last.own != entry.own) return false;
  for (uint32_t i = 0; i < kMultiOperands; ++i) {
    if (last.buffers[i] != entry.buffers[i]) return false;
    const bool single = group.spec.operands[i].single;
    if (entry.buffers[i] && entry.offsets[i] != last.offsets[i] + (single ? 0 : last.elements)) return false;
  }
  if (uint64_t{last.elements} + entry.elements > UINT32_MAX) return false;
  last.elements += entry.elements;
  for (uint32_t i = 0; i < kMultiOperands; ++i) {
    if (!group.spec.operands[i].single) last.sizes[i] = last.elements;
  }
  return true;
}

// False when the launch being collected has no room for it.
bool MultiTensor::append(Group& group, const MultiSpec& spec, const Entry& entry) {
  auto& columns = group.columns;
  MultiSpec grown = group.spec;
  const Buffer* added[kMultiOperands];
  uint32_t added_count = 0, added_columns[kMultiOperands], bindings = 0;
  for (uint32_t i = 0; i < kMultiOperands; ++i) {
    if (!entry.buffers[i]) continue;
    const uint32_t column = spec.operands[i].column;
    bool is_bound = std::find(added, added + added_count, entry.buffers[i]) != added + added_count;
    for (uint32_t other = 0; other < kMultiOperands && !is_bound; ++other) {
      const auto& bound = columns[other];
      is_bound = std::find(bound.begin(), bound.end(), entry.buffers[i]) != bound.end();
      if (is_bound && other != column) return false;
    }
    if (is_bound) continue;
    ++grown.counts[column];
    added_columns[added_count] = column;
    added[added_count++] = entry.buffers[i];
  }
  for (const uint32_t count : grown.counts) bindings += count;
  const MultiParams at(grown);
  if (bindings > max_bindings() || at.table + (group.entries.size() + 1) * at.entry > kMultiParamWords) return false;
  for (uint32_t i = 0; i < added_count; ++i) columns[added_columns[i]].push_back(added[i]);
  std::copy(grown.counts, grown.counts + kMultiOperands, group.spec.counts);
  group.entries.push_back(entry);
  return true;
}

bool MultiTensor::add(c10::ArrayRef<at::Tensor> operands, const Roles& roles, uint32_t own) {
  TORCH_INTERNAL_ASSERT(operands.size() <= kMultiOperands);
  MultiSpec spec;
  spec.program = spec_.program;
  spec.row = spec_.row;
  spec.variant = spec_.variant;
  Entry entry;
  entry.own = own;
  for (uint32_t i = 0; i < operands.size(); ++i) {
    const at::Tensor& tensor = operands[i];
    if (!tensor.defined()) continue;
    if (roles.written >> i & 1) own_memory(tensor);
    if (entry.elements == 0 && !(roles.singles >> i & 1)) entry.elements = static_cast<uint32_t>(tensor.numel());
    const auto bytes = tensor.element_size();
    if ((bytes != 4 && bytes != 2) || tensor.storage().nbytes() > max_binding_bytes()) return false;
    if (roles.kept >> i & 1) gather(tensor, roles.overwritten >> i & 1);
  }
  if (!describe(operands, roles, spec, entry)) return false;
  if (may_overlap(operands, roles.written) && overlaps(spec, entry)) flush();
  for (uint32_t i = 0; i < operands.size(); ++i) {
    if (operands[i].defined()) seen_.add(buffer_of(operands[i]), roles.written >> i & 1);
  }
  auto group =
      std::find_if(groups_.begin(), groups_.end(), [&](const Group& other) { return same_pattern(spec, other.spec); });
  if (group == groups_.end()) group = groups_.insert(group, Group{spec, {}, {}});
  if (merge(*group, entry) || append(*group, spec, entry)) return true;
  launch(*group);
  *group = Group{spec, {}, {}};
  TORCH_INTERNAL_ASSERT(append(*group, spec, entry));
  return true;
}

void MultiTensor::flush() {
  for (Group& group : groups_) launch(group);
  groups_.clear();
  seen_.clear();
}

void MultiTensor::launch(Group& group) const {
  const auto& entries = group.entries;
  const MultiSpec& spec = group.spec;
  Launch launch;
  for (const auto& column : group.columns) {
    for (const Buffer* buffer : column) launch.bindings[launch.binding_count++] = {buffer, 0, 0};
  }
  uint64_t steps = 0;
  for (const Entry& entry : entries) {
    steps += (uint64_t{entry.elements} + 3) / 4;
    for (uint32_t i = 0; i < kMultiOperands; ++i) {
      if (entry.buffers[i]) launch.bytes += uint64_t{entry.sizes[i]} * size_bytes(spec.operands[i].dtype);
    }
  }
  uint64_t chunk = chunk_ ? chunk_ : chunks_of(steps, target().workgroup).chunk, groups = 0;
  const auto chunks = [&](const Entry& entry) { return ((uint64_t{entry.elements} + 3) / 4 + chunk - 1) / chunk; };
  do {
    groups = 0;
    for (const Entry& entry : entries) groups += chunks(entry);
  } while (groups > kMaxGroups && (chunk *= 2));

  const MultiParams at(spec);
  uint32_t* words = launch.params;
  words[MultiParams::kTensors] = static_cast<uint32_t>(entries.size());
  words[MultiParams::kChunk] = static_cast<uint32_t>(chunk);
  std::copy(params_.begin(), params_.end(), &words[MultiParams::kNamed]);
  uint32_t* next = &words[at.table];
  uint64_t first = 0;
  for (const Entry& entry : entries) {
    next[MultiParams::kFirst] = static_cast<uint32_t>(first);
    next[MultiParams::kLength] = entry.elements;
    first += chunks(entry);
    std::fill_n(&next[MultiParams::kPlaces], at.place_words, 0);
    uint32_t place = 0, present = 0;
    for (uint32_t i = 0; i < kMultiOperands; ++i) {
      if (!spec.is_chosen(i)) continue;
      const auto& bound = group.columns[spec.operands[i].column];
      const auto index = static_cast<uint32_t>(std::find(bound.begin(), bound.end(), entry.buffers[i]) - bound.begin());
      next[MultiParams::kPlaces + place / MultiParams::kPlacesPerWord] |=
          index << (place % MultiParams::kPlacesPerWord * MultiParams::kPlaceBits);
      ++place;
    }
    for (uint32_t i = 0; i < kMultiOperands; ++i) {
      if (!entry.buffers[i]) continue;
      const bool quads = spec.aligned && !spec.operands[i].single;
      next[at.offset(present++)] = quads ? entry.offsets[i] / 4 : entry.offsets[i];
    }
    if (at.own_number) next[at.own_number] = entry.own;
    next += at.entry;
  }
  launch.param_words = static_cast<uint32_t>(next - words);
  launch.grid[0] = static_cast<uint32_t>(groups);
  const auto address = spec.program ? reinterpret_cast<uintptr_t>(spec.program) : reinterpret_cast<uintptr_t>(spec.row);
  launch.key.words = {(spec.program ? kProgramFamily : kFormulaFamily) | uint64_t{spec.variant} << 32, address,
                      spec.operand_bits(), spec.binding_bits()};
  launch.print = &print;
  runtime().stream.dispatch(launch);
}

}  // namespace torch_webgpu
