#include "device/recorded_call.h"

#include <ATen/core/TensorBase.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/scalar_tensor.h>

#include <cstdlib>
#include <cstring>

#include "device/allocator.h"
#include "device/context.h"
#include "device/generator.h"

namespace torch_webgpu {
namespace {

// TORCH_WEBGPU_HORIZONTAL=0 leaves launches as they are.
bool fuses() {
  const char* variable = std::getenv("TORCH_WEBGPU_HORIZONTAL");
  return !variable || std::strcmp(variable, "0") != 0;
}

// The call that this thread records.
thread_local RecordedCall* recorded = nullptr;

at::Tensor host_number_of(uint64_t number) {
  at::Tensor tensor = at::scalar_tensor(0, at::kLong);
  *tensor.mutable_data_ptr<int64_t>() = static_cast<int64_t>(number);
  return tensor;
}

Generator& generator() { return *default_generator().get<Generator>(); }

// Buffers from the pool that go back to it at the end of a replay.
class Scratch {
 public:
  explicit Scratch(size_t slots) : buffers_(slots, nullptr) {}
  ~Scratch() {
    for (Buffer* buffer : buffers_) {
      if (buffer) runtime().pool.release(buffer);
    }
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const Buffer* allocate(uint32_t slot, uint64_t size_bytes) {
    return buffers_[slot] = runtime().pool.allocate(size_bytes);
  }

 private:
  std::vector<Buffer*> buffers_;
};

}  // namespace

RecordedCall::~RecordedCall() {
  for (Buffer* buffer : fixed_buffers_) {
    if (buffer && !in_bad_fork()) runtime().pool.release(buffer);
  }
}

RecordedCall::RecordedCall(const Arguments& arguments, const std::vector<at::Tensor>& constants, bool fixed)
    : constants_(constants), fixed_(fixed) {
  // One slot for each argument, whether it has a buffer or not: an argument's slot is its position.
  std::vector<const Buffer*> given;
  for (const auto& [tensor, number] : arguments) {
    arguments_.push_back(tensor ? *tensor : at::Tensor());
    given.push_back(buffer_if_any(tensor));
  }
  const Generator& numbers = generator();
  tape_ = std::make_unique<Tape>(given, Tape::Random{numbers.current_seed(), numbers.get_offset()});
  if (fuses()) tape_->prepare_to_fuse();
  for (const auto& constant : constants_) {
    if (const Buffer* buffer = buffer_of(constant)) tape_->keep(*buffer);
  }
}

bool RecordedCall::begin() {
  if (!runtime().stream.record_to(*tape_)) return false;
  recorded = this;
  return true;
}

void RecordedCall::cancel() {
  recorded = nullptr;
  runtime().stream.stop_recording();
  arguments_.clear();
}

bool RecordedCall::end(const std::vector<std::optional<at::Tensor>>& results) {
  recorded = nullptr;
  runtime().stream.stop_recording();
  failure_ = tape_->failure();
  for (const auto& result : results) {
    if (!failure_.empty()) break;
    if (!result) {
      results_.push_back({Result::no_tensor, 0, at::ScalarType::Undefined, 0, 0, {}, {}, {}});
      continue;
    }
    auto found = result_of(*result);
    if (!found) {
      failure_ = "a result lies in no buffer that the call was given or made";
      break;
    }
    results_.push_back(std::move(*found));
  }
  std::vector<uint32_t> slots;
  for (const Result& result : results_) {
    if (result.kind == Result::made) slots.push_back(result.index);
  }
  plan_ = std::make_unique<CallPlan>(*tape_, arguments_, std::move(slots));
  arguments_.clear();
  made_randoms_.clear();
  return failure_.empty();
}

std::optional<RecordedCall::Result> RecordedCall::result_of(const at::Tensor& tensor) const {
  for (size_t i = 0; i < arguments_.size(); ++i) {
    if (arguments_[i].is_same(tensor)) {
      return Result{Result::argument, static_cast<uint32_t>(i), at::ScalarType::Undefined, 0, 0, {}, {}, {}};
    }
  }
  if (auto random = random_result_of(tensor)) return random;
  // The device was not read and no random numbers were drawn, so nothing that it depends on changes.
  if (is_host_number(tensor) && tape_->random_blocks() == 0) {
    return Result{Result::host_number, 0, at::ScalarType::Undefined, 0, 0, {}, {}, tensor.clone()};
  }
  if (!is_plain(tensor)) return std::nullopt;
  const Buffer* buffer = buffer_of(tensor);
  const uint32_t slot = buffer ? tape_->slot_of(*buffer) : Tape::kNoSlot;
  if (buffer && slot == Tape::kNoSlot) return std::nullopt;
  return Result{Result::made,
                slot,
                tensor.scalar_type(),
                tensor.storage().nbytes(),
                tensor.storage_offset(),
                c10::SmallVector<int64_t, 6>(tensor.sizes()),
                c10::SmallVector<int64_t, 6>(tensor.strides()),
                {}};
}

std::optional<RecordedCall::Result> RecordedCall::random_result_of(const at::Tensor& tensor) const {
  const auto with = [](Result::Kind kind, uint64_t offset) {
    return Result{kind, 0, at::ScalarType::Undefined, 0, static_cast<int64_t>(offset), {}, {}, {}};
  };
  for (const auto& [seed, counter] : made_randoms_) {
    if (tensor.is_same(seed)) return with(Result::seed, 0);
    if (tensor.is_same(counter)) {
      return with(Result::counter, static_cast<uint64_t>(bits_of(counter)) - tape_->randoms()[0].counter);
    }
  }
  return std::nullopt;
}

std::optional<uint32_t> RecordedCall::argument_of(const at::Tensor& tensor) const {
  for (size_t i = 0; i < arguments_.size(); ++i) {
    if (arguments_[i].is_same(tensor)) return static_cast<uint32_t>(i);
  }
  return std::nullopt;
}

std::vector<uint32_t> RecordedCall::random_arguments() const {
  std::vector<uint32_t> found;
  for (const auto& [seed, counter] : random_arguments_) found.insert(found.end(), {seed, counter});
  return found;
}

void made_random_start(const at::Tensor& seed, const at::Tensor& counter) {
  if (recorded) recorded->made_randoms_.push_back({seed, counter});
}

std::optional<uint32_t> random_source_of(const at::Tensor& seed, const at::Tensor& counter) {
  if (!recorded) return std::nullopt;
  for (const auto& made : recorded->made_randoms_) {
    if (made.seed.is_same(seed) && made.counter.is_same(counter)) return 0;
  }
  const auto seed_at = recorded->argument_of(seed), counter_at = recorded->argument_of(counter);
  if (!seed_at || !counter_at) return std::nullopt;
  recorded->random_arguments_.push_back({*seed_at, *counter_at});
  return recorded->tape_->add_random({static_cast<uint64_t>(bits_of(seed)), static_cast<uint64_t>(bits_of(counter))});
}

c10::Storage RecordedCall::storage_of(uint64_t slot_bytes, const Result& result) {
  Buffer* buffer = runtime().pool.allocate(slot_bytes);
  return {c10::Storage::use_byte_size_t(), result.storage_bytes,
          c10::DataPtr(buffer->address, buffer, &release_buffer, kDevice), allocator(), true};
}

std::vector<std::optional<at::Tensor>> RecordedCall::replay(const Arguments& arguments) {
  Runtime& here = runtime();
  const auto fused = plan_->tape_for(arguments);
  const Tape& tape = *fused;
  const auto& slots = tape.slots();
  c10::SmallVector<const Buffer*, 32> buffers(slots.size(), nullptr);
  c10::SmallVector<c10::Storage, 8> own_storages(fixed_ ? 0 : slots.size());
  if (fixed_) {
    fixed_buffers_.resize(slots.size(), nullptr);
    fixed_results_.resize(slots.size());
  }
  c10::Storage* storages = fixed_ ? fixed_results_.data() : own_storages.data();
  for (const Result& result : results_) {
    if (result.kind != Result::made || result.index == Tape::kNoSlot || slots[result.index].kind != Tape::Slot::own) {
      continue;
    }
    c10::Storage& storage = storages[result.index];
    if (buffers[result.index]) continue;
    // Nobody else holds the last result, and nobody resized it.
    const bool is_free = storage && storage.use_count() == 1 && storage.nbytes() == result.storage_bytes;
    if (!is_free) storage = storage_of(slots[result.index].size_bytes, result);
    buffers[result.index] = static_cast<const Buffer*>(storage.data_ptr().get_context());
  }
  Scratch scratch(slots.size());
  for (uint32_t i = 0; i < slots.size(); ++i) {
    if (buffers[i]) continue;
    switch (slots[i].kind) {
      case Tape::Slot::given: buffers[i] = buffer_if_any(arguments[i].tensor); break;
      case Tape::Slot::own:
        if (!fixed_) {
          buffers[i] = scratch.allocate(i, slots[i].size_bytes);
        } else {
          if (!fixed_buffers_[i]) fixed_buffers_[i] = here.pool.allocate(slots[i].size_bytes);
          buffers[i] = fixed_buffers_[i];
        }
        break;
      case Tape::Slot::fixed: buffers[i] = slots[i].buffer; break;
      case Tape::Slot::unused: break;
    }
  }
  c10::SmallVector<RandomStart, 4> randoms(1);
  if (tape.random_blocks() > 0) {
    const auto [seed, first] = generator().take(tape.random_blocks());
    randoms[0] = {seed, first};
  }
  for (const auto& [seed, counter] : random_arguments_) {
    randoms.push_back({static_cast<uint64_t>(bits_of(*arguments[seed].tensor)),
                       static_cast<uint64_t>(bits_of(*arguments[counter].tensor))});
  }
  here.stream.replay(tape, buffers.data(), randoms.data());

  std::vector<std::optional<at::Tensor>> results(results_.size());
  for (size_t i = 0; i < results_.size(); ++i) {
    const Result& result = results_[i];
    if (result.kind == Result::no_tensor) continue;
    if (result.kind == Result::argument) {
      results[i] = *arguments[result.index].tensor;
      continue;
    }
    if (result.kind == Result::host_number) {
      results[i] = result.number.clone();
      continue;
    }
    if (result.kind == Result::seed || result.kind == Result::counter) {
      results[i] = host_number_of(result.kind == Result::seed ? randoms[0].seed : randoms[0].counter + result.offset);
      continue;
    }
    c10::Storage storage;
    if (result.index == Tape::kNoSlot) {
      storage = c10::Storage(c10::Storage::use_byte_size_t(), 0, allocator(), true);
    } else if (slots[result.index].kind == Tape::Slot::given) {
      storage = arguments[result.index].tensor->storage();
    } else {
      storage = storages[result.index];
    }
    constexpr c10::DispatchKeySet keys(c10::DispatchKey::PrivateUse1);
    auto tensor =
        at::detail::make_tensor<c10::TensorImpl>(std::move(storage), keys, c10::scalarTypeToTypeMeta(result.dtype));
    tensor.unsafeGetTensorImpl()->set_sizes_and_strides(result.sizes, result.strides, result.offset);
    results[i] = std::move(tensor);
  }
  return results;
}

}  // namespace torch_webgpu
