#include "runtime/worker_threads.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "runtime/system.h"

namespace torch_webgpu {
namespace {

// All that have started threads. Leaked, since threads may outlive static variables.
struct Running {
  std::mutex mutex;
  std::vector<WorkerThreads*> all;
};
Running& running() {
  static auto* instance = new Running;
  return *instance;
}

std::atomic<bool> forked{false};  // a child of fork() has none of the threads

void stop_all() {
  if (forked) return;
  std::vector<WorkerThreads*> all;
  {
    const std::lock_guard guard(running().mutex);
    all = running().all;
  }
  for (auto* workers : all) workers->stop();
}

void add(WorkerThreads* workers) {
  const std::lock_guard guard(running().mutex);
  static const bool registered = [] {
    call_after_fork([] { forked = true; });
    return std::atexit(&stop_all) == 0;
  }();
  static_cast<void>(registered);
  running().all.push_back(workers);
}

void remove(WorkerThreads* workers) {
  const std::lock_guard guard(running().mutex);
  std::erase(running().all, workers);
}

}  // namespace

void WorkerThreads::run(std::function<void()> job) {
  const std::lock_guard guard(mutex_);
  if (stopped_) return;
  jobs_.push_back(std::move(job));
  if (jobs_.size() > idle_ && threads_.size() < most_) {
    if (threads_.empty()) add(this);
    threads_.emplace_back(&WorkerThreads::work, this);
  }
  changed_.notify_one();
}

void WorkerThreads::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    changed_.wait(lock, [&] { return stopped_ || !jobs_.empty(); });
    --idle_;
    if (stopped_) return;
    const auto job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job();
    lock.lock();
  }
}

void WorkerThreads::stop() {
  std::vector<std::thread> threads;
  {
    const std::lock_guard guard(mutex_);
    stopped_ = true;
    jobs_.clear();
    threads = std::move(threads_);
  }
  changed_.notify_all();
  for (auto& thread : threads) thread.join();
  if (!threads.empty()) remove(this);
}

}  // namespace torch_webgpu
