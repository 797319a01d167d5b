#include "runtime/gathering.h"

#include <algorithm>
#include <map>
#include <set>

#include "runtime/horizontal.h"
#include "runtime/schedule.h"
#include "runtime/segment_launch.h"
#include "runtime/segments.h"

namespace torch_webgpu {
namespace {

// Narrows down what is gathered until nothing else uses it.
class Choice {
 public:
  Choice(const Tape& tape, const std::vector<bool>& kept, const Device& device)
      : tape_(tape), most_bindings_(bindings_of(device)), is_chosen_(tape.slots().size(), false) {
    for (uint32_t slot = 0; slot < std::min(kept.size(), is_chosen_.size()); ++slot) {
      const auto& given = tape.slots()[slot];
      is_chosen_[slot] = kept[slot] && given.kind == Tape::Slot::given && given.size_bytes <= kMostGathered;
    }
    for (uint32_t step = 0; step < tape.steps().size(); ++step) {
      takes_part_.push_back(may_be_part(tape, step, device) && SegmentLaunch::may_take(tape, step));
    }
    const std::vector<uint32_t> depths = Schedule(tape).depths();
    do {
      while (leave_out()) {
      }
    } while (leave_out_few(depths));
  }

  std::vector<uint32_t> slots() const {
    std::set<uint32_t> slots;
    for (uint32_t step = 0; step < takes_part_.size(); ++step) {
      for_bindings(step, [&](uint32_t slot, bool) {
        if (is_chosen_[slot]) slots.insert(slot);
      });
    }
    return {slots.begin(), slots.end()};
  }

 private:
  template <class Visit>
  void for_bindings(uint32_t number, const Visit& visit) const {
    const auto& step = tape_.steps()[number];
    for (uint32_t b = 0; b < step.binding_count; ++b) visit(tape_.bindings(step)[b].slot, writes(tape_, number, b));
  }

  // Steps that write what is not gathered, and then what other steps use.
  bool leave_out() {
    bool changes = false;
    for (uint32_t step = 0; step < takes_part_.size(); ++step) {
      bool writes_any = false, writes_other = false;
      for_bindings(step, [&](uint32_t slot, bool is_written) {
        writes_any |= is_written && is_chosen_[slot];
        writes_other |= is_written && !is_chosen_[slot];
      });
      takes_part_[step] = takes_part_[step] && writes_any && !writes_other;
      if (takes_part_[step]) continue;
      for_bindings(step, [&](uint32_t slot, bool) {
        changes |= is_chosen_[slot];
        is_chosen_[slot] = false;
      });
    }
    return changes;
  }

  // Steps that one launch can bind as they are, with all that runs beside them.
  bool leave_out_few(const std::vector<uint32_t>& depths) {
    std::map<uint32_t, std::set<uint32_t>> bound;  // by depth
    for (uint32_t step = 0; step < takes_part_.size(); ++step) {
      if (takes_part_[step]) for_bindings(step, [&](uint32_t slot, bool) { bound[depths[step]].insert(slot); });
    }
    bool changes = false;
    for (uint32_t step = 0; step < takes_part_.size(); ++step) {
      if (!takes_part_[step] || bound[depths[step]].size() > most_bindings_) continue;
      takes_part_[step] = false;
      changes = true;
    }
    return changes;
  }

  const Tape& tape_;
  const uint32_t most_bindings_;
  std::vector<bool> is_chosen_, takes_part_;
};

}  // namespace

bool Gathered::has(const Tape& tape, uint32_t number) const {
  const auto& step = tape.steps()[number];
  const auto* bindings = tape.bindings(step);
  return std::any_of(bindings, bindings + step.binding_count, [&](const auto& binding) { return of(binding.slot); });
}

std::vector<uint32_t> worth_gathering(const Tape& tape, const std::vector<bool>& kept, const Device& device) {
  return Choice(tape, kept, device).slots();
}

Gathered places_of(Tape& tape, const std::vector<uint32_t>& slots, const std::vector<const Buffer*>& buffers) {
  Gathered gathered;
  gathered.places.resize(tape.slots().size());
  for (size_t i = 0; i < slots.size(); ++i) {
    const Buffer& whole = buffers[i]->segment->whole;
    tape.keep(whole);
    gathered.places[slots[i]] = {tape.slot_of(whole), buffers[i]->offset};
  }
  return gathered;
}

}  // namespace torch_webgpu
