// The device's random numbers: a Philox counter, which gives the same numbers on every adapter.
#pragma once
#include <ATen/core/Generator.h>
#include <c10/core/GeneratorImpl.h>

namespace torch_webgpu {

struct Generator final : c10::GeneratorImpl {
  explicit Generator(uint64_t seed = c10::detail::getNonDeterministicRandom());
  static c10::DeviceType device_type();

  void set_current_seed(uint64_t seed) override;
  void set_offset(uint64_t offset) override { offset_ = offset; }
  uint64_t get_offset() const override { return offset_; }
  uint64_t current_seed() const override { return seed_; }
  uint64_t seed() override;
  void set_state(const c10::TensorImpl& state) override;
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override;

  // Takes the next `blocks` blocks of four words for one op, from any thread.
  struct Blocks {
    uint64_t seed, first;
  };
  Blocks take(uint64_t blocks);

 private:
  Generator* clone_impl() const override;

  uint64_t seed_;
  uint64_t offset_ = 0;
};

const at::Generator& default_generator();

}  // namespace torch_webgpu
