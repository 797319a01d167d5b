#include "device/call_plan.h"

#include <algorithm>
#include <utility>

#include "device/allocator.h"
#include "device/context.h"
#include "runtime/gathering.h"
#include "runtime/horizontal.h"

namespace torch_webgpu {

CallPlan::CallPlan(const Tape& recorded, const std::vector<at::Tensor>& arguments, std::vector<uint32_t> results)
    : recorded_(recorded), results_(std::move(results)) {
  for (const auto& argument : arguments) {
    const bool has_memory = argument.defined() && argument.has_storage();
    storages_.push_back(has_memory ? std::optional(argument.storage().getWeakStorageImpl()) : std::nullopt);
  }
}

std::shared_ptr<const Tape> CallPlan::tape_for(const Arguments& arguments) {
  const std::lock_guard lock(mutex_);
  if (!storages_.empty()) find_kept(arguments);  // once
  if (!fused_ || !holds(arguments)) fuse(arguments);
  ++calls_;
  return fused_;
}

void CallPlan::find_kept(const Arguments& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const at::Tensor* tensor = arguments[i].tensor;
    kept_.push_back(buffer_if_any(tensor) && storages_[i] &&
                    storages_[i]->_unsafe_get_target() == tensor->storage().unsafeGetStorageImpl());
  }
  moves_.resize(arguments.size());
  storages_.clear();
}

// An argument that has moved again and again is none that its owner keeps.
bool CallPlan::holds(const Arguments& arguments) {
  constexpr uint32_t kManyCalls = 100;
  constexpr uint8_t kMostMoves = 4;
  bool holds = true;
  for (const auto& [argument, id] : places_) {
    if (buffer_of(*arguments[argument].tensor)->id == id) [[likely]]
      continue;
    if (holds && calls_ > kManyCalls) std::fill(moves_.begin(), moves_.end(), 0);
    if (++moves_[argument] == kMostMoves) kept_[argument] = false;
    holds = false;
  }
  return holds;
}

void CallPlan::fuse(const Arguments& arguments) {
  Runtime& here = runtime();
  auto tape = std::make_shared<Tape>(recorded_);
  std::vector<Place> places;
  if (recorded_.is_prepared_to_fuse()) {
    const auto slots = worth_gathering(*tape, kept_, here.device);
    std::vector<const Buffer*> buffers;
    for (const uint32_t slot : slots) {
      buffers.push_back(buffer_of(*arguments[slot].tensor));
      if (!here.pool.gather(const_cast<Buffer&>(*buffers.back()), largest_binding(), /*keeps_contents=*/true)) break;
      places.push_back({slot, buffers.back()->id});
    }
    const bool all = places.size() == slots.size();
    if (!all) places.clear();
    fuse_horizontally(*tape, here.kernels, here.device, all ? places_of(*tape, slots, buffers) : Gathered());
    tape->share_memory(results_);
  }
  fused_ = std::move(tape);
  places_ = std::move(places);
  calls_ = 0;
}

}  // namespace torch_webgpu
