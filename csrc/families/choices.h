// Which of its kernels a family takes for a launch: the first of its table that suits, or the one that was fastest when
// they were timed on this machine. torch_webgpu/tune/ times them and keeps what it found; here is what a launch looks
// at, and what is needed to run one again.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/util/FunctionRef.h>

#include <atomic>
#include <bit>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "families/launch.h"

namespace torch_webgpu {

// A class of launches that share a choice, as bits: dtypes and layouts exactly, sizes to the nearest power of two.
class ChoiceKey {
 public:
  explicit ChoiceKey(Family family) { add(static_cast<uint64_t>(family), 8); }

  ChoiceKey& add(uint64_t value, uint32_t bits) {
    value_ = value_ << bits | value;
    return *this;
  }
  ChoiceKey& add_size(int64_t size) {
    return add(std::bit_width(static_cast<uint64_t>(size) * 181 / 128), 6);  // 181 / 128: the root of two
  }
  ChoiceKey& add_dtype(const at::Tensor& tensor) {
    return add(tensor.defined() ? static_cast<uint64_t>(tensor.scalar_type()) + 1 : 0, 6);
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0;
};

// A launch, and the kernels that compete for it and its like.
struct Contest {
  struct Kernel {
    int64_t number;  // in the family's table
    std::string name;
  };
  using Run = std::function<void(const std::vector<at::Tensor>&)>;

  const char* family = "";
  std::vector<Kernel> kernels;      // that can run, the table's choice first
  int64_t reference = 0;            // the number of the one whose results the others' must match
  std::vector<at::Tensor> tensors;  // the operands, on the meta device: some may be undefined
  size_t outputs = 1;               // how many of them, at the front, are written
  Run run;                          // the launch with these operands
  uint64_t key = 0;

  // Operands like those of the launch. They hold the same numbers each time.
  std::vector<at::Tensor> scratch() const;
  uint64_t size_bytes() const;  // of these
  std::string text() const;     // the family, and sizes and dtypes of the operands
};

// A tensor's dtype, sizes, strides and offset, without memory.
at::Tensor layout_of(const at::Tensor& tensor);

namespace detail {
inline std::atomic<int> users_of_choices{0};
int64_t choose(uint64_t key, int64_t first, int64_t work, c10::function_ref<Contest()> contest);
bool is_preparing();
}  // namespace detail

// False unless kernels are tuned here, or were.
inline bool choices_are_on() { return detail::users_of_choices.load(std::memory_order_relaxed) > 0; }

// For a family whose table says `first`: the number of the kernel to take. `work` is about proportional to the launch's
// time; `contest` is called where the launch is going to be timed.
inline int64_t choose_measured(uint64_t key, int64_t first, int64_t work, c10::function_ref<Contest()> contest) {
  return detail::choose(key, first, work, contest);
}

// Dispatches a launch of a family that chooses, or only compiles its kernel while a contest is prepared.
inline void dispatch_chosen(const Launch& launch) {
  if (choices_are_on() && detail::is_preparing()) [[unlikely]] {
    runtime().stream.prepare(launch);
  } else {
    runtime().stream.dispatch(launch);
  }
}

// For torch_webgpu/tune/:

// From now on launches look for choices. Those that take long are queued for timing, each once; `wake` is called when
// the queue was empty. With `work` 0 none is.
void start_choices(uint64_t work, void (*wake)());
void stop_choices();
void set_choice(uint64_t key, int64_t number);
std::optional<Contest> next_contest();

// Makes launches of this key take one kernel, on this thread.
class Forced {
 public:
  Forced(uint64_t key, int64_t number, bool only_prepares);
  ~Forced();
  Forced(const Forced&) = delete;
  Forced& operator=(const Forced&) = delete;

  const uint64_t key;
  const int64_t number;
  const bool only_prepares;
};

// The contests of all launches until it ends, of any thread: one for each key.
class Contests {
 public:
  Contests();
  ~Contests();
  Contests(const Contests&) = delete;
  Contests& operator=(const Contests&) = delete;

  std::vector<Contest> take();
};

}  // namespace torch_webgpu
