// What a recorded call replays: its tape with launches fused, of which some reach their tensors through segments.
#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "device/layout.h"
#include "runtime/tape.h"

namespace torch_webgpu {

// The tape is fused when the second call shows which arguments their owner keeps: those with the same memory. It is
// fused anew when one of those that were gathered has moved.
class CallPlan {
 public:
  // `arguments` are those of the recorded call, `results` the slots that are used after it.
  CallPlan(const Tape& recorded, const std::vector<at::Tensor>& arguments, std::vector<uint32_t> results);

  // Gathers what the tape expects to be gathered. Threads may replay what they were given side by side.
  std::shared_ptr<const Tape> tape_for(const Arguments& arguments);

 private:
  struct Place {
    uint32_t argument, id;  // of Buffer
  };
  void find_kept(const Arguments& arguments);
  bool holds(const Arguments& arguments);
  void fuse(const Arguments& arguments);

  using WeakStorage = c10::weak_intrusive_ptr<c10::StorageImpl>;
  const Tape& recorded_;
  const std::vector<uint32_t> results_;
  std::mutex mutex_;
  std::shared_ptr<const Tape> fused_;
  std::vector<Place> places_;                         // of what `fused_` reaches through segments
  std::vector<std::optional<WeakStorage>> storages_;  // of the recorded call, until the second one
  std::vector<bool> kept_;                            // by argument
  std::vector<uint8_t> moves_;                        // by argument, since a tape was good for many calls
  uint32_t calls_ = 0;                                // of `fused_`
};

}  // namespace torch_webgpu
