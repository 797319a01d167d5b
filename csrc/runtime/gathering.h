// Which tensors of a tape are worth gathering in segments (buffer_pool.h), and where they lie.
#pragma once
#include <vector>

#include "runtime/tape.h"

namespace torch_webgpu {

// The slots of a tape that a launch reaches through the segments they lie in.
struct Gathered {
  struct Place {
    uint32_t segment = Tape::kNoSlot;  // the slot of the whole segment
    uint64_t offset = 0;
  };
  std::vector<Place> places = {};  // by slot; shorter than the slots where the others are bound by themselves

  const Place* of(uint32_t slot) const {
    return slot < places.size() && places[slot].segment != Tape::kNoSlot ? &places[slot] : nullptr;
  }
  // Whether a step is one of those that reach all they write through segments.
  bool has(const Tape& tape, uint32_t step) const;
};

// Those of the given slots in `kept`, whose owners keep them from call to call, that make launches fewer once they are
// gathered: more tensors that launches write side by side than a launch binds. Nothing else on the tape uses them, so
// that no launch reads a part of a segment and writes another.
std::vector<uint32_t> worth_gathering(const Tape& tape, const std::vector<bool>& kept, const Device& device);

// The places of slots whose buffers lie in segments. The tape gets a slot for each segment.
Gathered places_of(Tape& tape, const std::vector<uint32_t>& slots, const std::vector<const Buffer*>& buffers);

}  // namespace torch_webgpu
