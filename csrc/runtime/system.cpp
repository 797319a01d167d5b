#include "runtime/system.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#ifdef _WIN32
#define NOMINMAX
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#endif
#ifdef __linux__
#include <sched.h>
#include <sys/sysinfo.h>
#endif
#ifdef __APPLE__
#include <mach/mach.h>
#include <sys/sysctl.h>
#endif

#include "runtime/error.h"

namespace torch_webgpu {

#ifdef _WIN32

void* open_library(const std::string& path) {
  HMODULE library = LoadLibraryA(path.c_str());
  if (!library) {
    throw UnavailableError(path + ": LoadLibrary failed with error " + std::to_string(GetLastError()));
  }
  return library;
}

void* find_function(void* library, const char* name) {
  return reinterpret_cast<void*>(GetProcAddress(static_cast<HMODULE>(library), name));
}

char* reserve_addresses(uint64_t size_bytes) {
  return static_cast<char*>(VirtualAlloc(nullptr, size_bytes, MEM_RESERVE, PAGE_NOACCESS));
}

std::optional<HostMemory> host_memory() {
  MEMORYSTATUSEX status{};
  status.dwLength = sizeof(status);
  if (!GlobalMemoryStatusEx(&status)) return std::nullopt;
  return HostMemory{status.ullAvailPhys, status.ullTotalPhys};
}

void call_after_fork(void (*)()) {}

#else

// Never unloaded: driver threads may outlive every static variable.
void* open_library(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) throw UnavailableError(dlerror());
  return library;
}

void* find_function(void* library, const char* name) { return dlsym(library, name); }

char* reserve_addresses(uint64_t size_bytes) {
  void* base = mmap(nullptr, size_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANON | MAP_NORESERVE, -1, 0);
  return base == MAP_FAILED ? nullptr : static_cast<char*>(base);
}

void call_after_fork(void (*function)()) { pthread_atfork(nullptr, nullptr, function); }

#endif

#ifdef __linux__

std::optional<HostMemory> host_memory() {
  struct sysinfo host{};
  if (sysinfo(&host) != 0) return std::nullopt;
  return HostMemory{uint64_t{host.freeram} * host.mem_unit, uint64_t{host.totalram} * host.mem_unit};
}

std::vector<ThreadId> threads_of_this_process() {
  std::vector<ThreadId> ids;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", error)) {
    ids.push_back(static_cast<ThreadId>(std::strtol(entry.path().filename().c_str(), nullptr, 10)));
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::string name_of_thread(ThreadId thread) {
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

void pin_thread(ThreadId thread, int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  sched_setaffinity(thread, sizeof(set), &set);
}

#else

std::vector<ThreadId> threads_of_this_process() { return {}; }
std::string name_of_thread(ThreadId) { return {}; }
std::vector<int> cores_of_this_process() { return {}; }
void pin_thread(ThreadId, int) {}

#endif

#ifdef __APPLE__

std::optional<HostMemory> host_memory() {
  uint64_t total = 0;
  size_t size = sizeof(total);
  if (sysctlbyname("hw.memsize", &total, &size, nullptr, 0) != 0) return std::nullopt;
  vm_statistics64_data_t pages{};
  mach_msg_type_number_t count = HOST_VM_INFO64_COUNT;
  if (host_statistics64(mach_host_self(), HOST_VM_INFO64, reinterpret_cast<host_info64_t>(&pages), &count) != 0) {
    return std::nullopt;
  }
  return HostMemory{uint64_t{pages.free_count} * vm_kernel_page_size, total};
}

#endif

}  // namespace torch_webgpu
