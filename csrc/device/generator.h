// The device's random numbers: a Philox counter, which gives the same numbers on every adapter.
#pragma once
#include <ATen/core/Generator.h>
#include <c10/core/GeneratorImpl.h>

namespace torch_webgpu {

struct Generator final : c10::GeneratorImpl {
  explicit Generator(uint64_t seed = c10::detail::getNonDeterministicRandom());
  static c10::DeviceType device_type();

  void set_current_seed(uint64_t seed) override;
  void set_offset(uint64_t offset) override { state_->offset = offset; }
  uint64_t get_offset() const override { return state_->offset; }
  uint64_t current_seed() const override { return state_->seed; }
  uint64_t seed() override;
  void set_state(const c10::TensorImpl& state) override;
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override;
  // Seed and counter that several generators share: activation checkpointing in compiled graphs lends the default
  // generator the ones of a block while the block runs, and again while it is recomputed.
  void graphsafe_set_state(const c10::intrusive_ptr<c10::GeneratorImpl>& other) override;
  c10::intrusive_ptr<c10::GeneratorImpl> graphsafe_get_state() const override;

  // Takes the next `blocks` blocks of four words for one op, from any thread.
  struct Blocks {
    uint64_t seed, first;
  };
  Blocks take(uint64_t blocks);

 private:
  struct State : c10::intrusive_ptr_target {
    State(uint64_t seed, uint64_t offset) : seed(seed), offset(offset) {}
    uint64_t seed, offset;
  };

  explicit Generator(c10::intrusive_ptr<State> state);
  Generator* clone_impl() const override;

  c10::intrusive_ptr<State> state_;
};

const at::Generator& default_generator();

}  // namespace torch_webgpu
