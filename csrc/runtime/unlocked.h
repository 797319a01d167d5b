#pragma once
#include <mutex>

namespace torch_webgpu {

// Lets go of a lock that this thread holds, to the end of the scope.
class Unlocked {
 public:
  explicit Unlocked(std::mutex& mutex) : mutex_(mutex) { mutex_.unlock(); }
  ~Unlocked() { mutex_.lock(); }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  std::mutex& mutex_;
};

}  // namespace torch_webgpu
