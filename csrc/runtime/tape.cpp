#include "runtime/tape.h"

namespace torch_webgpu {

Tape::Tape(const std::vector<const Buffer*>& given, Random random) : random_(random) {
  slots_.reserve(given.size());
  for (const auto* buffer : given) {
    if (buffer) slot_by_id_.emplace(buffer->id, static_cast<uint32_t>(slots_.size()));
    slots_.push_back({Slot::given, buffer ? buffer->size_bytes : 0, buffer});
  }
}

void Tape::allocated(const Buffer& buffer) {
  // The pool hands a buffer out again once it is free: the two uses are then one slot, as they are one memory.
  if (slot_by_id_.try_emplace(buffer.id, static_cast<uint32_t>(slots_.size())).second) {
    slots_.push_back({Slot::own, buffer.size_bytes, &buffer});
  }
}

void Tape::keep(const Buffer& buffer) {
  if (slot_by_id_.try_emplace(buffer.id, static_cast<uint32_t>(slots_.size())).second) {
    slots_.push_back({Slot::fixed, buffer.size_bytes, &buffer});
  }
}

uint32_t Tape::slot_of(const Buffer& buffer) const {
  const auto found = slot_by_id_.find(buffer.id);
  return found == slot_by_id_.end() ? kNoSlot : found->second;
}

uint32_t Tape::use(const Buffer& buffer) {
  const uint32_t slot = slot_of(buffer);
  if (slot != kNoSlot) return slot;
  fail("it uses a tensor that was neither given nor made while recording");
  return 0;
}

void Tape::add(const Launch& launch, std::shared_ptr<Kernel> kernel, const Buffer& status) {
  if (!failure_.empty()) return;
  Step step{};
  step.kernel = std::move(kernel);
  step.first_binding = static_cast<uint32_t>(bindings_.size());
  step.binding_count = launch.binding_count;
  step.first_word = static_cast<uint32_t>(words_.size());
  step.param_words = launch.param_words;
  step.random_word = launch.random_word;
  std::copy(launch.grid, launch.grid + 3, step.grid);
  step.windowed = launch.windowed;
  step.reports = launch.reports;
  step.bytes = launch.bytes;
  for (uint32_t i = 0; i < launch.binding_count; ++i) {
    const auto& [buffer, window, size_bytes] = launch.bindings[i];
    if (buffer == &status) keep(status);
    bindings_.push_back({use(*buffer), window, size_bytes});
  }
  words_.insert(words_.end(), launch.params, launch.params + launch.param_words);
  if (launch.random_word != kNoWord) random_pending_ = false;
  steps_.push_back(std::move(step));
  ++launches_;
}

void Tape::add_copy(const Buffer& source, uint64_t source_offset, const Buffer& target, uint64_t target_offset,
                    uint64_t size_bytes) {
  if (!failure_.empty()) return;
  Step step{};
  step.first_binding = static_cast<uint32_t>(bindings_.size());
  step.binding_count = 2;
  step.source_offset = source_offset;
  step.target_offset = target_offset;
  step.size_bytes = size_bytes;
  bindings_.push_back({use(source), 0, 0});
  bindings_.push_back({use(target), 0, 0});
  steps_.push_back(std::move(step));
}

// A launch that takes random numbers says where its parameters hold them. Numbers that no launch has named by the time
// more are taken went somewhere else, and a replay would repeat them.
void Tape::took_random_numbers(uint64_t blocks) {
  if (random_pending_) fail("it draws random numbers on the host");
  random_pending_ = true;
  random_blocks_ += blocks;
}

void Tape::fail(std::string why) {
  if (failure_.empty()) failure_ = std::move(why);
}

}  // namespace torch_webgpu
