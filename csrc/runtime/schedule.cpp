#include "runtime/schedule.h"

#include <algorithm>

#include "runtime/kernel_text.h"
#include "runtime/tape.h"

namespace torch_webgpu {

bool writes(const Tape& tape, uint32_t step, uint32_t binding) {
  if (!tape.steps()[step].kernel) return binding == 1;  // a copy
  const auto& text = tape.text(step);
  return !text || text->storages()[binding].is_written;
}

Schedule::Schedule(const Tape& tape) : nodes_(tape.steps().size()) {
  struct Slot {
    int64_t writer = -1;
    std::vector<uint32_t> readers;
  };
  std::vector<Slot> slots(tape.slots().size());
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    const auto& step = tape.steps()[i];
    for (uint32_t b = 0; b < step.binding_count; ++b) {
      Slot& slot = slots[tape.bindings(step)[b].slot];
      if (slot.writer >= 0) depend(i, static_cast<uint32_t>(slot.writer));
      if (!writes(tape, i, b)) {
        slot.readers.push_back(i);
        continue;
      }
      for (const uint32_t reader : slot.readers) depend(i, reader);
      slot = {i, {}};
    }
  }
  for (size_t i = nodes_.size(); i-- > 0;) {
    for (const uint32_t later : nodes_[i].later)
      nodes_[i].height = std::max(nodes_[i].height, nodes_[later].height + 1);
  }
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].waits_for == 0) ready_.push_back(i);
  }
}

const std::vector<uint32_t>& Schedule::ready() {
  std::sort(ready_.begin(), ready_.end(), [this](uint32_t a, uint32_t b) {
    return nodes_[a].height != nodes_[b].height ? nodes_[a].height > nodes_[b].height : a < b;
  });
  return ready_;
}

void Schedule::take(const std::vector<uint32_t>& steps) {
  for (const uint32_t step : steps) {
    std::erase(ready_, step);
    for (const uint32_t later : nodes_[step].later) {
      if (--nodes_[later].waits_for == 0) ready_.push_back(later);
    }
  }
}

std::vector<uint32_t> Schedule::depths() const {
  std::vector<uint32_t> depths(nodes_.size(), 0);
  for (size_t i = 0; i < nodes_.size(); ++i) {
    for (const uint32_t later : nodes_[i].later) depths[later] = std::max(depths[later], depths[i] + 1);
  }
  return depths;
}

void Schedule::depend(uint32_t later, uint32_t earlier) {
  if (later == earlier) return;
  nodes_[earlier].later.push_back(later);
  ++nodes_[later].waits_for;
}

}  // namespace torch_webgpu
