#include "device/generator.h"

#include <ATen/EmptyTensor.h>
#include <ATen/Utils.h>

#include <cstring>
#include <mutex>

#include "device/context.h"
#include "runtime/tape.h"

namespace torch_webgpu {

Generator::Generator(uint64_t seed) : Generator(c10::make_intrusive<State>(seed, 0)) {}

Generator::Generator(c10::intrusive_ptr<State> state)
    : c10::GeneratorImpl(kDevice, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)), state_(std::move(state)) {}

c10::DeviceType Generator::device_type() { return kDeviceType; }

void Generator::set_current_seed(uint64_t seed) {
  state_->seed = seed;
  state_->offset = 0;
}

uint64_t Generator::seed() {
  set_current_seed(c10::detail::getNonDeterministicRandom(true));
  return state_->seed;
}

Generator::Blocks Generator::take(uint64_t blocks) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Blocks taken{state_->seed, state_->offset};
  state_->offset += blocks;
  if (auto* tape = is_open() ? runtime().stream.recording() : nullptr) [[unlikely]] {
    if (this != default_generator().unsafeGetGeneratorImpl()) tape->fail("it draws from a generator of its own");
    tape->took_random_numbers(blocks);
  }
  return taken;
}

c10::intrusive_ptr<c10::TensorImpl> Generator::get_state() const {
  auto state = at::detail::empty_cpu({2 * sizeof(uint64_t)}, at::kByte);
  auto* bytes = state.mutable_data_ptr<uint8_t>();
  std::memcpy(bytes, &state_->seed, sizeof(uint64_t));
  std::memcpy(bytes + sizeof(uint64_t), &state_->offset, sizeof(uint64_t));
  return state.getIntrusivePtr();
}

void Generator::set_state(const c10::TensorImpl& state) {
  at::detail::check_rng_state(state);
  TORCH_CHECK(state.numel() == 2 * sizeof(uint64_t), "RNG state is wrong size");
  const auto* bytes = state.data_dtype_initialized<uint8_t>();
  std::memcpy(&state_->seed, bytes, sizeof(uint64_t));
  std::memcpy(&state_->offset, bytes + sizeof(uint64_t), sizeof(uint64_t));
}

void Generator::graphsafe_set_state(const c10::intrusive_ptr<c10::GeneratorImpl>& other) {
  const auto* generator = dynamic_cast<const Generator*>(other.get());
  TORCH_CHECK_VALUE(generator, "graphsafe_set_state() takes a generator of webgpu");
  state_ = generator->state_;
  // A replay would draw from the state that the generator has then.
  if (auto* tape = is_open() ? runtime().stream.recording() : nullptr) tape->fail("it exchanges a generator's state");
}

c10::intrusive_ptr<c10::GeneratorImpl> Generator::graphsafe_get_state() const {
  return c10::intrusive_ptr<Generator>::reclaim(new Generator(state_));
}

Generator* Generator::clone_impl() const {
  return new Generator(c10::make_intrusive<State>(state_->seed, state_->offset));
}

const at::Generator& default_generator() {
  static const auto* generator = new at::Generator(c10::make_intrusive<Generator>(c10::default_rng_seed_val));
  return *generator;
}

}  // namespace torch_webgpu
