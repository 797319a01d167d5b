// Launches and copies as data: recorded once while they run, replayed with other buffers.
//
// A tape names buffers by slots. The buffers that the caller gives come first, in the caller's order. A buffer that is
// allocated while recording gets a slot of its own and is the tape's: a replay allocates it again. Any other buffer has
// an owner that the tape does not know, so it makes the tape unusable, as do uploads and readbacks, whose values a
// replay would not see change.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/launch.h"

namespace torch_webgpu {

class KernelText;

class Tape {
 public:
  struct Slot {
    enum Kind : uint8_t { given, own, fixed, unused } kind;  // fixed: lives as long as the tape
    uint64_t size_bytes;
    const Buffer* buffer;  // the buffer while recording; fixed slots keep it
  };
  struct Step {
    std::shared_ptr<Kernel> kernel;  // null: a copy of `size_bytes`, from the first binding to the second
    uint32_t first_binding, binding_count;
    uint32_t first_word, param_words;
    uint32_t random_word, random_source;  // as in Launch
    uint32_t grid[3];
    bool windowed, reports;
    uint64_t bytes, flops;  // as in Launch
    uint64_t source_offset, target_offset, size_bytes;
  };
  struct SlotBinding {
    uint32_t slot, window;
    uint64_t size_bytes;
  };
  using Random = RandomStart;

  // `given` may hold nulls, for slots without a buffer.
  explicit Tape(const std::vector<const Buffer*>& given) : Tape(given, Random()) {}
  // `random` is where the generator's numbers begin.
  Tape(const std::vector<const Buffer*>& given, Random random);

  // What a replay runs through.
  struct Program {
    std::vector<Step> steps;
    std::vector<SlotBinding> bindings;
    std::vector<uint32_t> words;
  };

  // Before recording: notes what fuse_horizontally() needs, and keeps the uses of a buffer apart that the pool hands
  // out again, since a launch would have to wait for the earlier use. share_memory() joins them again.
  void prepare_to_fuse() { fuses_ = true; }
  bool is_prepared_to_fuse() const { return fuses_; }
  // While recording: what the stream and the pool did.
  void add(const Launch& launch, std::shared_ptr<Kernel> kernel, const Buffer& status);
  void add_copy(const Buffer& source, uint64_t source_offset, const Buffer& target, uint64_t target_offset,
                uint64_t size_bytes);
  void allocated(const Buffer& buffer);
  void took_random_numbers(uint64_t blocks);
  // A run of random numbers that the caller gives instead of the generator, by its number in Launch::random_source.
  uint32_t add_random(Random random);
  void keep(const Buffer& buffer);  // its owner keeps it as long as the tape
  void fail(std::string why);

  const std::string& failure() const { return failure_; }  // why it cannot be replayed; empty when it can
  const std::vector<Slot>& slots() const { return slots_; }
  const std::vector<Step>& steps() const { return program_.steps; }
  const SlotBinding* bindings(const Step& step) const { return program_.bindings.data() + step.first_binding; }
  // A replay may change words, for instance a learning rate; all later replays see the change.
  uint32_t* params(const Step& step) { return program_.words.data() + step.first_word; }
  const uint32_t* params(const Step& step) const { return program_.words.data() + step.first_word; }
  uint32_t slot_of(const Buffer& buffer) const;                    // kNoSlot where no step uses it
  const std::vector<Random>& randoms() const { return randoms_; }  // by source, while recording
  uint64_t random_blocks() const { return random_blocks_; }        // that one replay takes from the generator
  size_t launch_count() const;
  const std::shared_ptr<const KernelText>& text(size_t step) const { return texts_[step]; }
  void append_to(Program& program, size_t step) const;
  void replace(Program program);
  // Slots of the tape's own whose uses do not overlap become one, but for those in `kept`, which are used afterwards.
  void share_memory(const std::vector<uint32_t>& kept);

  static constexpr uint32_t kNoSlot = ~0u;

 private:
  uint32_t use(const Buffer& buffer);

  std::vector<Slot> slots_;
  std::unordered_map<uint32_t, uint32_t> slot_by_id_;
  Program program_;
  std::vector<std::shared_ptr<const KernelText>> texts_;  // of the steps; null for copies and what cannot be a part
  std::vector<Random> randoms_;
  uint64_t random_blocks_ = 0;
  bool fuses_ = false;
  bool random_pending_ = false;  // numbers were taken, and no launch has used them yet
  std::string failure_;
};

}  // namespace torch_webgpu
