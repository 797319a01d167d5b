// The calls that depend on the operating system. Where a system lacks one of the optional calls, it returns nothing.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace torch_webgpu {

// Opens a shared library for the rest of the process; throws UnavailableError with the system's reason.
void* open_library(const std::string& path);
// The address of a function of that library, or null.
void* find_function(void* library, const char* name);

// Reserves a range of addresses that are never readable and take no memory; null where the system refuses.
char* reserve_addresses(uint64_t size_bytes);

struct HostMemory {
  uint64_t free_bytes, total_bytes;
};
std::optional<HostMemory> host_memory();

// From now on every child of fork() calls `function` first. Does nothing where there is no fork().
void call_after_fork(void (*function)());

// Threads of this process, in the order in which they were started, and the cores it may use. Both are empty except on
// Linux.
using ThreadId = int;
std::vector<ThreadId> threads_of_this_process();
std::string name_of_thread(ThreadId thread);
std::vector<int> cores_of_this_process();
// Keeps a thread on one core; where that is not allowed, the thread stays where it may run now.
void pin_thread(ThreadId thread, int core);

}  // namespace torch_webgpu
