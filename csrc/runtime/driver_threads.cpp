#include "runtime/driver_threads.h"

#ifdef __linux__
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace torch_webgpu {
namespace {

std::vector<pid_t> threads_of_this_process() {
  std::vector<pid_t> ids;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", error)) {
    ids.push_back(static_cast<pid_t>(std::strtol(entry.path().filename().c_str(), nullptr, 10)));
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::string name_of(pid_t thread) {
  std::string name;
  std::getline(std::ifstream("/proc/self/task/" + std::to_string(thread) + "/comm"), name);
  return name;
}

std::vector<int> cores_of_this_process() {
  cpu_set_t set;
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

void pin(pid_t thread, int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  sched_setaffinity(thread, sizeof(set), &set);  // where it may not, all stays as it was
}

}  // namespace

void spread_driver_threads() {
  const char* wanted = std::getenv("TORCH_WEBGPU_PIN");
  if (wanted && std::string_view(wanted) == "0") return;
  const auto cores = cores_of_this_process();
  const auto threads = threads_of_this_process();
  // The driver starts its threads for triangles, which have a name, and right after them as many for kernels.
  size_t named = 0;
  for (size_t i = 0; i < threads.size(); ++i) {
    if (name_of(threads[i]).rfind("llvmpipe-", 0) == 0) {
      ++named;
      continue;
    }
    if (named > 1 && named == cores.size() && i + named <= threads.size()) {
      for (size_t n = 0; n < named; ++n) pin(threads[i + n], cores[n]);
    }
    named = 0;
  }
}

}  // namespace torch_webgpu
#else
namespace torch_webgpu {
void spread_driver_threads() {}
}  // namespace torch_webgpu
#endif
