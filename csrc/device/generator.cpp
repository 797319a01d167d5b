#include "device/generator.h"

#include <ATen/EmptyTensor.h>
#include <ATen/Utils.h>

#include <cstring>
#include <mutex>

#include "device/context.h"
#include "runtime/tape.h"

namespace torch_webgpu {

Generator::Generator(uint64_t seed)
    : c10::GeneratorImpl(kDevice, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)), seed_(seed) {}

c10::DeviceType Generator::device_type() { return kDeviceType; }

void Generator::set_current_seed(uint64_t seed) {
  seed_ = seed;
  offset_ = 0;
}

uint64_t Generator::seed() {
  set_current_seed(c10::detail::getNonDeterministicRandom(true));
  return seed_;
}

Generator::Blocks Generator::take(uint64_t blocks) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Blocks taken{seed_, offset_};
  offset_ += blocks;
  if (auto* tape = is_open() ? runtime().stream.recording() : nullptr) [[unlikely]] {
    if (this != default_generator().unsafeGetGeneratorImpl()) tape->fail("it draws from a generator of its own");
    tape->took_random_numbers(blocks);
  }
  return taken;
}

c10::intrusive_ptr<c10::TensorImpl> Generator::get_state() const {
  auto state = at::detail::empty_cpu({2 * sizeof(uint64_t)}, at::kByte);
  auto* bytes = state.mutable_data_ptr<uint8_t>();
  std::memcpy(bytes, &seed_, sizeof(seed_));
  std::memcpy(bytes + sizeof(seed_), &offset_, sizeof(offset_));
  return state.getIntrusivePtr();
}

void Generator::set_state(const c10::TensorImpl& state) {
  at::detail::check_rng_state(state);
  TORCH_CHECK(state.numel() == 2 * sizeof(uint64_t), "RNG state is wrong size");
  const auto* bytes = state.data_dtype_initialized<uint8_t>();
  std::memcpy(&seed_, bytes, sizeof(seed_));
  std::memcpy(&offset_, bytes + sizeof(seed_), sizeof(offset_));
}

Generator* Generator::clone_impl() const {
  auto* clone = new Generator(seed_);
  clone->offset_ = offset_;
  return clone;
}

const at::Generator& default_generator() {
  static const auto* generator = new at::Generator(c10::make_intrusive<Generator>(c10::default_rng_seed_val));
  return *generator;
}

}  // namespace torch_webgpu
