// Kernels by exact key, a bound on their number, and shaders that do not compile.
#include "support.h"

namespace torch_webgpu {
using namespace test;

namespace {

// Two keys that differ and still have one hash: the second word undoes what the first did to the state.
std::pair<KernelKey, KernelKey> colliding_keys() {
  const auto state_after = [](uint64_t word) {
    const uint64_t state = word * 0x9E3779B97F4A7C15ull;
    return state ^ state >> 32;
  };
  KernelKey a, b;
  a.words = {1, 42, 0, 0};
  b.words = {2, 42 ^ state_after(1) ^ state_after(2), 0, 0};
  return {a, b};
}

struct SmallCache {
  static constexpr size_t capacity = 4;
  KernelCache kernels{runtime().device, capacity};
  Stream stream{runtime().device, kernels};
};

// m0[i] += which, written into the shader's text.
Program adder(uint32_t which) {
  return {"adder " + std::to_string(which), 1, "m0[id.x] += " + std::to_string(which) + "u;"};
}

}  // namespace

TEST_CASE("kernels: a kernel is printed and compiled once") {
  auto& stream = runtime().stream;
  const Program once = adder(1);
  const Words out(std::vector<uint32_t>(64, 0));
  static int printed = 0;
  Launch launch = make_launch(once, {out.binding()});
  launch.print = [](const Launch& self) {
    ++printed;
    return source_of(*static_cast<const Program*>(self.context));
  };
  launch.key.words[3] = 77;
  const auto before = stream.stats();
  for (int i = 0; i < 100; ++i) stream.dispatch(launch);
  CHECK(printed == 1);
  CHECK(stream.stats().kernels_compiled == before.kernels_compiled + 1);
  CHECK(stream.stats().kernels_cached == before.kernels_cached + 1);
  CHECK(out.get() == std::vector<uint32_t>(64, 100));
}

TEST_CASE("kernels: keys of one hash stay apart") {
  const auto [first_key, second_key] = colliding_keys();
  REQUIRE(first_key != second_key);
  REQUIRE(KernelKeyHash{}(first_key) == KernelKeyHash{}(second_key));
  const Program first = adder(1), second = adder(1000);
  const Words out(std::vector<uint32_t>(64, 0));
  Launch one = make_launch(first, {out.binding()}), other = make_launch(second, {out.binding()});
  one.key = first_key;
  other.key = second_key;
  for (int i = 0; i < 10; ++i) {
    runtime().stream.dispatch(one);
    runtime().stream.dispatch(other);
  }
  CHECK(out.get() == std::vector<uint32_t>(64, 10'010));
}

TEST_CASE("kernels: every word of a key counts") {
  const Words out(std::vector<uint32_t>(64, 0));
  std::vector<Program> programs;
  for (uint32_t i = 0; i < 5; ++i) programs.push_back(adder(1 << 4 * i));
  for (uint32_t i = 0; i < 5; ++i) {
    Launch launch = make_launch(programs[i], {out.binding()});
    launch.key.words = {99, 99, 99, 99};
    if (i < 4) launch.key.words[i] ^= uint64_t{1} << 63;
    runtime().stream.dispatch(launch);
  }
  CHECK(out.get() == std::vector<uint32_t>(64, 0x11111));
}

TEST_CASE("kernels: the cache keeps its bound and what was evicted comes back") {
  SmallCache small;
  const Words out(std::vector<uint32_t>(64, 0));
  std::vector<Program> programs;
  for (uint32_t i = 0; i < 11; ++i) programs.push_back(adder(i));
  uint32_t expected = 0;
  for (uint32_t i = 0; i < 66; ++i) {
    run(programs[i % 11], {&out}, {}, 1, small.stream);
    expected += i % 11;
    REQUIRE(small.kernels.size() <= SmallCache::capacity);
  }
  CHECK(small.kernels.compiled() > 11);
  small.stream.synchronize();
  CHECK(out.get() == std::vector<uint32_t>(64, expected));
}

TEST_CASE("kernels: the cache keeps its bound of memory") {
  constexpr uint32_t mib = 2;
  KernelCache kernels(runtime().device, /*capacity=*/1000, mib);
  Stream stream(runtime().device, kernels);
  const Words out(std::vector<uint32_t>(64, 0));
  std::vector<Program> programs;
  for (uint32_t i = 0; i < 11; ++i) programs.push_back(adder(i));
  uint32_t expected = 0;
  for (uint32_t i = 0; i < 33; ++i) {
    run(programs[i % 11], {&out}, {}, 1, stream);
    expected += i % 11;
    REQUIRE(kernels.size_bytes() > 0);
    REQUIRE(kernels.size_bytes() <= uint64_t{mib} << 20);
    REQUIRE(kernels.size() < 6);
  }
  CHECK(kernels.compiled() > 11);
  CHECK(stream.stats().kernel_bytes == kernels.size_bytes());
  stream.synchronize();
  CHECK(out.get() == std::vector<uint32_t>(64, expected));
}

TEST_CASE("kernels: a longer text counts for more memory") {
  const KernelSource brief{"brief", std::string(100, ' ')}, lengthy{"lengthy", std::string(10'000, ' ')};
  CHECK(KernelCache::estimated_bytes(lengthy) > KernelCache::estimated_bytes(brief) + 9'900);
}

TEST_CASE("kernels: one larger than the bound is kept alone") {
  KernelCache kernels(runtime().device, /*capacity=*/1000, /*capacity_mib=*/0);
  Stream stream(runtime().device, kernels);
  const Words out(std::vector<uint32_t>(64, 0));
  const Program one = adder(1), other = adder(2);
  for (int i = 0; i < 3; ++i) {
    run(one, {&out}, {}, 1, stream);
    run(one, {&out}, {}, 1, stream);
    CHECK(kernels.size() == 1);
    run(other, {&out}, {}, 1, stream);
  }
  CHECK(kernels.compiled() == 6);
  stream.synchronize();
  CHECK(out.get() == std::vector<uint32_t>(64, 12));
}

TEST_CASE("kernels: the one in use survives eviction") {
  SmallCache small;
  const Words out(std::vector<uint32_t>(64, 0));
  const Program steady = adder(1);
  std::vector<Program> others;
  for (uint32_t i = 0; i < 9; ++i) others.push_back(adder(0));
  for (const auto& other : others) {
    run(steady, {&out}, {}, 1, small.stream);
    run(other, {&out}, {}, 1, small.stream);
    run(steady, {&out}, {}, 1, small.stream);
  }
  CHECK(small.kernels.compiled() == 1 + others.size());
  small.stream.synchronize();
  CHECK(out.get() == std::vector<uint32_t>(64, 18));
}

TEST_CASE("kernels: a shader that does not compile names its op and harms nothing") {
  auto& stream = runtime().stream;
  const Program syntax{"frobnicate_f32", 1, "m0[id.x] = ;"}, type{"typo_f32", 1, "m0[id.x] = sin(id.x);"},
      interface{"greedy_f32", 1, "m0[id.x] = m7[id.x];"};
  const Words out(std::vector<uint32_t>(64, 0));
  const auto cached = stream.stats().kernels_cached;
  for (const Program* broken : {&syntax, &type, &interface}) {
    run(add_constant, {&out}, {1});
    for (int attempt = 0; attempt < 2; ++attempt) {
      run(*broken, {&out});
      const auto message = message_of<Error>([&] { stream.synchronize(); });
      CHECK(contains(message, broken->label));
      CHECK(contains(message, "does not compile"));
    }
    run(add_constant, {&out}, {1});
  }
  CHECK(stream.stats().kernels_cached <= cached + 1);
  stream.synchronize();  // nothing is left to report
  CHECK(out.get() == std::vector<uint32_t>(64, 6));
}

TEST_CASE("kernels: a shader that asks for too much is refused at compile time") {
  const auto& limits = runtime().device.limits;
  const Words out(std::vector<uint32_t>(64, 0));
  const Program wide{"too_wide", 1, "m0[0] = 1u;", std::to_string(limits.maxComputeWorkgroupSizeX * 2)};
  run(wide, {&out});
  CHECK(contains(message_of<Error>([&] { runtime().stream.synchronize(); }), "too_wide"));
  runtime().stream.synchronize();
  CHECK(out.get() == std::vector<uint32_t>(64, 0));
}

TEST_CASE("kernels: as many buffers as a launch may bind") {
  const uint32_t most = std::min(kMaxBindings, runtime().device.limits.maxStorageBuffersPerShaderStage);
  std::vector<std::unique_ptr<Words>> buffers;
  std::vector<Binding> bindings;
  Program sum{"sum_of_all", most, "m0[id.x] = 0u"};
  uint32_t expected = 0;
  for (uint32_t i = 0; i < most; ++i) {
    buffers.push_back(std::make_unique<Words>(std::vector<uint32_t>(64, 1 << i)));
    bindings.push_back(buffers.back()->binding());
    if (i > 0) {
      sum.body += " + m" + std::to_string(i) + "[id.x]";
      expected += 1 << i;
    }
  }
  sum.body += ";";
  runtime().stream.dispatch(make_launch(sum, bindings));
  CHECK(buffers[0]->get() == std::vector<uint32_t>(64, expected));
}

}  // namespace torch_webgpu
