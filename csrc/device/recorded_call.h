// A function of tensors as one tape: what it gave to the device in one call is given again, with the tensors of the
// next. The wrapper that Inductor generates is such a function: it looks at the layout of its arguments, never at their
// elements.
#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <vector>

#include "device/call_plan.h"
#include "device/layout.h"
#include "runtime/tape.h"

namespace torch_webgpu {

// Numbers on the host that say which random numbers an op took, for its gradient. A replayed call takes other ones. The
// op that makes them says so, and the one that reads them asks for the source that its launches name
// (Launch::random_source); none where they are nothing that changes between two calls of what is recorded, if anything
// is.
void made_random_start(const at::Tensor& seed, const at::Tensor& counter);
std::optional<uint32_t> random_source_of(const at::Tensor& seed, const at::Tensor& counter);

class RecordedCall {
 public:
  // `constants` are the tensors that the function keeps: they stay the same in every call. With `fixed` buffers the
  // call keeps what the first replay allocates: later ones work in it, and give results in it once nobody holds the
  // last ones.
  RecordedCall(const Arguments& arguments, const std::vector<at::Tensor>& constants, bool fixed = false);
  ~RecordedCall();
  RecordedCall(const RecordedCall&) = delete;
  RecordedCall& operator=(const RecordedCall&) = delete;
  // Between these two all that this thread gives to the device is recorded. `begin` is false when a thread records
  // already; `end` is false, with the reason in `failure`, when the call cannot be replayed.
  bool begin();
  bool end(const std::vector<std::optional<at::Tensor>>& results);
  void cancel();
  const std::string& failure() const { return failure_; }

  // The results, with nothing where the function gave no tensor.
  std::vector<std::optional<at::Tensor>> replay(const Arguments& arguments);
  // The arguments on the host that are seeds and counters: the recording holds for all of their values.
  std::vector<uint32_t> random_arguments() const;

 private:
  friend void made_random_start(const at::Tensor& seed, const at::Tensor& counter);
  friend std::optional<uint32_t> random_source_of(const at::Tensor& seed, const at::Tensor& counter);
  struct Result {
    enum Kind : uint8_t { no_tensor, argument, host_number, seed, counter, made } kind;  // made: in a slot
    uint32_t index;                                                                      // of the argument or the slot
    at::ScalarType dtype;
    uint64_t storage_bytes;
    int64_t offset;  // of a counter: from the first number that the call takes
    c10::SmallVector<int64_t, 6> sizes, strides;
    at::Tensor number;
  };

  static c10::Storage storage_of(uint64_t slot_bytes, const Result& result);
  std::optional<Result> result_of(const at::Tensor& tensor) const;
  std::optional<Result> random_result_of(const at::Tensor& tensor) const;
  std::optional<uint32_t> argument_of(const at::Tensor& tensor) const;

  struct RandomNumbers {
    at::Tensor seed, counter;
  };
  struct RandomArguments {
    uint32_t seed, counter;
  };

  std::vector<at::Tensor> arguments_;  // while recording, so that no buffer of theirs is handed out again
  std::vector<at::Tensor> constants_;
  std::unique_ptr<Tape> tape_;  // as it was recorded
  std::unique_ptr<CallPlan> plan_;
  std::vector<Result> results_;
  std::string failure_;
  std::vector<RandomNumbers> made_randoms_;        // while recording
  std::vector<RandomArguments> random_arguments_;  // by source, from source 1 on
  // With fixed buffers, by slot: what the call works in, and the memory of its results.
  const bool fixed_;
  std::vector<Buffer*> fixed_buffers_;
  std::vector<c10::Storage> fixed_results_;
};

}  // namespace torch_webgpu
