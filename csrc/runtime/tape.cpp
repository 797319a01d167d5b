#include "runtime/tape.h"

#include <algorithm>

#include "runtime/horizontal.h"

namespace torch_webgpu {

Tape::Tape(const std::vector<const Buffer*>& given, Random random) : randoms_{random} {
  slots_.reserve(given.size());
  for (const auto* buffer : given) {
    if (buffer) slot_by_id_.emplace(buffer->id, static_cast<uint32_t>(slots_.size()));
    slots_.push_back({Slot::given, buffer ? buffer->size_bytes : 0, buffer});
  }
}

void Tape::allocated(const Buffer& buffer) {
  // The pool hands a buffer out again once it is free: the two uses are one slot, as they are one memory.
  const auto [found, is_new] = slot_by_id_.try_emplace(buffer.id, static_cast<uint32_t>(slots_.size()));
  if (!is_new && !fuses_) return;
  found->second = static_cast<uint32_t>(slots_.size());
  slots_.push_back({Slot::own, buffer.size_bytes, &buffer});
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
  step.first_binding = static_cast<uint32_t>(program_.bindings.size());
  step.binding_count = launch.binding_count;
  step.first_word = static_cast<uint32_t>(program_.words.size());
  step.param_words = launch.param_words;
  step.random_word = launch.random_word;
  step.random_source = launch.random_source;
  std::copy(launch.grid, launch.grid + 3, step.grid);
  step.windowed = launch.windowed;
  step.reports = launch.reports;
  step.bytes = launch.bytes;
  step.flops = launch.flops;
  for (uint32_t i = 0; i < launch.binding_count; ++i) {
    const auto& [buffer, window, size_bytes] = launch.bindings[i];
    if (buffer == &status) keep(status);
    program_.bindings.push_back({use(*buffer), window, size_bytes});
  }
  program_.words.insert(program_.words.end(), launch.params, launch.params + launch.param_words);
  if (launch.random_word != kNoWord && launch.random_source == 0) random_pending_ = false;
  program_.steps.push_back(std::move(step));
  if (fuses_) texts_.push_back(text_of(launch));
}

void Tape::add_copy(const Buffer& source, uint64_t source_offset, const Buffer& target, uint64_t target_offset,
                    uint64_t size_bytes) {
  if (!failure_.empty()) return;
  Step step{};
  step.first_binding = static_cast<uint32_t>(program_.bindings.size());
  step.binding_count = 2;
  step.source_offset = source_offset;
  step.target_offset = target_offset;
  step.size_bytes = size_bytes;
  program_.bindings.push_back({use(source), 0, 0});
  program_.bindings.push_back({use(target), 0, 0});
  program_.steps.push_back(std::move(step));
  if (fuses_) texts_.emplace_back();
}

size_t Tape::launch_count() const {
  return std::count_if(steps().begin(), steps().end(), [](const Step& step) { return step.kernel != nullptr; });
}

void Tape::append_to(Program& program, size_t number) const {
  Step step = steps()[number];
  const SlotBinding* first_binding = bindings(step);
  const uint32_t* first_word = params(step);
  step.first_binding = static_cast<uint32_t>(program.bindings.size());
  step.first_word = static_cast<uint32_t>(program.words.size());
  program.bindings.insert(program.bindings.end(), first_binding, first_binding + step.binding_count);
  program.words.insert(program.words.end(), first_word, first_word + step.param_words);
  program.steps.push_back(std::move(step));
}

void Tape::replace(Program program) {
  program_ = std::move(program);
  texts_.clear();
}

void Tape::share_memory(const std::vector<uint32_t>& kept) {
  constexpr uint32_t kNever = ~0u;
  std::vector<uint32_t> last_use(slots_.size(), kNever), becomes(slots_.size(), kNoSlot);
  const auto is_shared = [&](uint32_t slot) {
    return slots_[slot].kind == Slot::own && std::find(kept.begin(), kept.end(), slot) == kept.end();
  };
  for (uint32_t i = 0; i < steps().size(); ++i) {
    const Step& step = steps()[i];
    for (uint32_t b = 0; b < step.binding_count; ++b) last_use[bindings(step)[b].slot] = i;
  }
  std::unordered_map<uint64_t, std::vector<uint32_t>> free;  // slots by size
  for (uint32_t i = 0; i < steps().size(); ++i) {
    const Step& step = steps()[i];
    SlotBinding* places = &program_.bindings[step.first_binding];
    std::vector<uint32_t> ends;
    for (uint32_t b = 0; b < step.binding_count; ++b) {
      const uint32_t slot = places[b].slot;
      if (!is_shared(slot)) continue;
      if (becomes[slot] == kNoSlot) {
        auto& spare = free[slots_[slot].size_bytes];
        becomes[slot] = spare.empty() ? slot : spare.back();
        if (!spare.empty()) spare.pop_back();
      }
      places[b].slot = becomes[slot];
      if (last_use[slot] == i && std::find(ends.begin(), ends.end(), slot) == ends.end()) ends.push_back(slot);
    }
    for (const uint32_t slot : ends) free[slots_[slot].size_bytes].push_back(becomes[slot]);
  }
  for (uint32_t slot = 0; slot < slots_.size(); ++slot) {
    if (is_shared(slot) && becomes[slot] != slot) slots_[slot].kind = Slot::unused;
  }
}

// A launch that takes random numbers says where its parameters hold them. Numbers that no launch has named by the time
// more are taken went somewhere else, and a replay would repeat them.
void Tape::took_random_numbers(uint64_t blocks) {
  if (random_pending_) fail("it draws random numbers on the host");
  random_pending_ = true;
  random_blocks_ += blocks;
}

uint32_t Tape::add_random(Random random) {
  randoms_.push_back(random);
  return static_cast<uint32_t>(randoms_.size() - 1);
}

void Tape::fail(std::string why) {
  if (failure_.empty()) failure_ = std::move(why);
}

}  // namespace torch_webgpu
