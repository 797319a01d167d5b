#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <chrono>
#include <cstdlib>

#include "support.h"

namespace torch_webgpu::test {

const Program add_constant{"add_constant", 1, "m0[id.x] += p[0].x;"};
const Program add_buffer{"add_buffer", 2, "m0[id.x] += m1[id.x];"};
const Program spin{"spin", 1,
                   "var x = id.x + 1u;"
                   "for (var i = 0u; i < p[0].x; i++) { x ^= x << 13u; x ^= x >> 17u; x ^= x << 5u; }"
                   "m0[id.x] = x | 1u;",
                   "8"};

DeviceOptions options_from_environment() {
  const auto variable = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value ? value : "";
  };
  DeviceOptions options;
  options.runtime = variable("TORCH_WEBGPU_RUNTIME");
  options.adapter = variable("TORCH_WEBGPU_ADAPTER");
  options.limits = variable("TORCH_WEBGPU_LIMITS");
  if (const auto path = variable("TORCH_WEBGPU_TEST_DAWN"); !path.empty()) options.dawn_paths = {path};
  if (const auto path = variable("TORCH_WEBGPU_TEST_WGPU"); !path.empty()) options.wgpu_paths = {path};
  return options;
}

Runtime& open_runtime() { return *new Runtime(Adapter::find(options_from_environment())); }

Runtime& runtime() {
  static Runtime& instance = open_runtime();
  return instance;
}

KernelSource source_of(const Program& program) {
  std::string text;
  for (uint32_t i = 0; i < program.binding_count; ++i) {
    const auto index = std::to_string(i);
    text += "@group(0) @binding(" + index + ") var<storage, read_write> m" + index + ": array<u32>;\n";
  }
  text += "@group(1) @binding(0) var<uniform> p: array<vec4<u32>, 64>;\n@compute @workgroup_size(" +
          program.workgroup_size + ")\nfn main(@builtin(global_invocation_id) id: vec3<u32>) {\n" + program.body +
          "\n}\n";
  return {program.label, text};
}

Words::Words(uint64_t count, Runtime& owner) : owner_(owner), count_(count), buffer_(owner.pool.allocate(count * 4)) {}
Words::Words(const std::vector<uint32_t>& values, Runtime& owner) : Words(values.size(), owner) { set(values); }

void Words::set(const std::vector<uint32_t>& values) {
  owner_.stream.write(*buffer_, 0, values.data(), values.size() * 4);
}

std::vector<uint32_t> Words::get() const {
  std::vector<uint32_t> values(count_);
  owner_.stream.read(*buffer_, 0, values.data(), count_ * 4);
  return values;
}

Launch make_launch(const Program& program, const std::vector<Binding>& bindings, const std::vector<uint32_t>& params,
                   uint32_t groups) {
  REQUIRE(bindings.size() == program.binding_count);
  REQUIRE(params.size() <= kParamWords);
  Launch launch;
  launch.key.words[0] = program.id;
  launch.context = &program;
  launch.print = [](const Launch& self) { return source_of(*static_cast<const Program*>(self.context)); };
  launch.grid[0] = groups;
  for (const auto& binding : bindings) launch.bindings[launch.binding_count++] = binding;
  for (const auto word : params) launch.params[launch.param_words++] = word;
  return launch;
}

void run(const Program& program, std::initializer_list<const Words*> operands, const std::vector<uint32_t>& params,
         uint32_t groups, Stream& stream) {
  std::vector<Binding> bindings;
  for (const auto* words : operands) bindings.push_back(words->binding());
  stream.dispatch(make_launch(program, bindings, params, groups));
}

double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

uint32_t rounds_for(double milliseconds) {
  const Words out(64);
  run(spin, {&out}, {1});
  runtime().stream.synchronize();  // the driver compiles a kernel when it first runs
  for (uint32_t rounds = 1 << 16;; rounds *= 2) {
    REQUIRE(rounds < 1u << 31);
    const double begin = now_ms();
    run(spin, {&out}, {rounds});
    runtime().stream.synchronize();
    if (now_ms() - begin >= milliseconds) return rounds;
  }
}

}  // namespace torch_webgpu::test
