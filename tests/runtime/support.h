// What the tests share: the runtime that the environment names, and a short way to write and launch a kernel.
#pragma once
#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "runtime/error.h"
#include "runtime/runtime.h"

namespace torch_webgpu::test {

// TORCH_WEBGPU_RUNTIME and TORCH_WEBGPU_ADAPTER choose; TORCH_WEBGPU_TEST_DAWN and TORCH_WEBGPU_TEST_WGPU say where the
// libraries are.
DeviceOptions options_from_environment();

Runtime& runtime();       // opened by the first test that asks
Runtime& open_runtime();  // one more, for a test that spoils it; never closed, like the real one

inline uint64_t next_program_id() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

// One invocation per index of `id.x`; sees the storages m0, m1, … and the parameters p.
struct Program {
  std::string label;
  uint32_t binding_count;
  std::string body;
  std::string workgroup_size = "64";
  uint64_t id = next_program_id();  // the kernel's key
};
KernelSource source_of(const Program& program);

// A buffer of 32-bit words that goes back to the pool at the end of its scope.
class Words {
 public:
  explicit Words(uint64_t count, Runtime& owner = runtime());
  explicit Words(const std::vector<uint32_t>& values, Runtime& owner = runtime());
  ~Words() { owner_.pool.release(buffer_); }
  Words(const Words&) = delete;
  Words& operator=(const Words&) = delete;

  void set(const std::vector<uint32_t>& values);
  std::vector<uint32_t> get() const;
  const Buffer& buffer() const { return *buffer_; }
  Binding binding(uint32_t window = 0) const { return {buffer_, window, 0}; }

 private:
  Runtime& owner_;
  uint64_t count_;
  Buffer* buffer_;
};

// `program` has to outlive the launch.
Launch make_launch(const Program& program, const std::vector<Binding>& bindings,
                   const std::vector<uint32_t>& params = {}, uint32_t groups = 1);
void run(const Program& program, std::initializer_list<const Words*> operands, const std::vector<uint32_t>& params = {},
         uint32_t groups = 1, Stream& stream = runtime().stream);

// What `call` throws, as text; empty when it throws nothing or something else.
template <class Exception, class Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const Exception& error) {
    return error.what();
  }
  return {};
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// m0[i] += p[0].x
extern const Program add_constant;
// m0[i] += m1[i]
extern const Program add_buffer;
// Spins p[0].x rounds, then m0[0] is not zero.
extern const Program spin;

double now_ms();
// How many rounds keep `spin` busy for at least `milliseconds` here.
uint32_t rounds_for(double milliseconds);

}  // namespace torch_webgpu::test
