// A few threads that run jobs in the order in which they come.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace torch_webgpu {

// The threads start with the first job. Where the process ends, or the object does, jobs that no thread has begun are
// dropped, and those that one has begun are waited for: static variables of a driver must not go while it works.
class WorkerThreads {
 public:
  explicit WorkerThreads(size_t most) : most_(most) {}
  ~WorkerThreads() { stop(); }
  WorkerThreads(const WorkerThreads&) = delete;
  WorkerThreads& operator=(const WorkerThreads&) = delete;

  // A job may not throw.
  void run(std::function<void()> job);
  void stop();

 private:
  void work();

  const size_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  std::vector<std::thread> threads_;
  size_t idle_ = 0;
  bool stopped_ = false;
};

}  // namespace torch_webgpu
