// When the commands recorded so far are submitted.
//
// A device that was waited for idles until the next submit, so the first batches after a wait are small and each is
// twice as large as the one before. A batch also ends before it holds so much work that a slow GPU would be busy for
// long: its system resets a GPU that does not answer for a second or two.
#pragma once
#include <algorithm>
#include <cstdint>

namespace torch_webgpu {

class BatchLimit {
 public:
  BatchLimit(uint32_t first, uint32_t most) : first_(first), most_(most), limit_(first) {}

  // One more command, of so many bytes of memory and floating-point operations. True when the batch is full.
  bool add(uint64_t bytes, uint64_t flops) {
    ++count_;
    work_ += kFlopsPerByte * bytes + flops;
    return count_ >= limit_ || work_ >= kMostWork;
  }
  void submitted() {
    if (count_ >= limit_) limit_ = std::min(2 * limit_, most_);
    count_ = 0;
    work_ = 0;
  }
  void waited() { limit_ = first_; }

 private:
  // Ten milliseconds of a slow integrated GPU, of 400 GFLOPS and 25 GB/s.
  static constexpr uint64_t kMostWork = 4'000'000'000, kFlopsPerByte = 16;

  const uint32_t first_, most_;
  uint32_t limit_, count_ = 0;
  uint64_t work_ = 0;
};

}  // namespace torch_webgpu
