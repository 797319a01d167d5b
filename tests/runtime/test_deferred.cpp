// While kernels are compiled: the host goes on, the order stays, and what does not compile is said at the next wait.
#include <chrono>
#include <cstdlib>
#include <thread>

#include "runtime/profile.h"
#include "runtime/tape.h"
#include "support.h"

namespace torch_webgpu {
using namespace test;

namespace {

constexpr double kDelayMs = 400;

// A runtime that takes kDelayMs and a little for each kernel; of `add_constant` it has the kernel already.
Runtime& slow_runtime() {
  static Runtime& instance = []() -> Runtime& {
    setenv("TORCH_WEBGPU_TEST_COMPILE_MS", std::to_string(static_cast<int>(kDelayMs)).c_str(), 1);
    Runtime& opened = open_runtime();
    unsetenv("TORCH_WEBGPU_TEST_COMPILE_MS");
    const Words any(64, opened);
    opened.stream.prepare(make_launch(add_constant, {any.binding()}, {0}));
    return opened;
  }();
  return instance;
}

std::vector<uint32_t> filled(uint32_t value) { return std::vector<uint32_t>(64, value); }

// m0[i] = m0[i] * which + 1, written into the shader's text.
Program affine(uint32_t which) {
  return {"affine " + std::to_string(which), 1, "m0[id.x] = m0[id.x] * " + std::to_string(which) + "u + 1u;"};
}

const Program broken{"broken_f32", 1, "m0[id.x] = ;"};

}  // namespace

TEST_CASE("deferred: the host goes on behind a kernel that is compiled, and the order stays") {
  auto& slow = slow_runtime();
  auto& stream = slow.stream;
  const Program triple = affine(3);
  Words out(filled(2), slow);
  const Words copied(64, slow);
  const double begin = now_ms();
  Event event(true);
  run(triple, {&out}, {}, 1, stream);
  run(add_constant, {&out}, {10}, 1, stream);
  stream.copy(out.buffer(), 0, copied.buffer(), 0, 256);
  out.set(filled(100));
  run(add_constant, {&out}, {1}, 1, stream);
  stream.record(event);
  stream.flush();
  run(triple, {&out}, {}, 1, stream);
  CHECK_FALSE(stream.is_complete(event));
  CHECK_FALSE(stream.is_idle());
  CHECK(now_ms() - begin < kDelayMs / 2);
  CHECK(copied.get() == filled(17));
  CHECK(now_ms() - begin >= kDelayMs);
  CHECK(out.get() == filled(304));
  stream.wait(event);
  CHECK(stream.is_complete(event));
  CHECK(stream.elapsed_ms(event, event) == 0);
}

TEST_CASE("deferred: what is put aside counts at once, and its turn needs no readback") {
  auto& slow = slow_runtime();
  auto& stream = slow.stream;
  const Program triple = affine(3);
  Words out(filled(2), slow);
  const Words copied(64, slow);
  const auto before = stream.stats();
  run(triple, {&out}, {}, 1, stream);
  stream.copy(out.buffer(), 0, copied.buffer(), 0, 256);
  out.set(filled(5));
  const auto after = stream.stats();
  CHECK(after.dispatches - before.dispatches == 1);
  CHECK(after.copies - before.copies == 1);
  CHECK(after.uploads - before.uploads == 1);
  CHECK(after.kernels_compiled - before.kernels_compiled == 1);
  CHECK(after.readbacks == before.readbacks);
  Event event(false);
  stream.record(event);
  const double begin = now_ms();
  while (!stream.is_complete(event)) {
    REQUIRE(now_ms() - begin < 20 * kDelayMs);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  CHECK(stream.stats().dispatches == after.dispatches);
  CHECK(stream.stats().uploads == after.uploads);
  CHECK(copied.get() == filled(7));
  CHECK(out.get() == filled(5));
}

TEST_CASE("deferred: ten threads with a new kernel each do not wait for one another") {
  auto& slow = slow_runtime();
  constexpr uint32_t threads = 10;
  std::vector<Program> programs;
  for (uint32_t i = 0; i < threads; ++i) programs.push_back(affine(100 + i));
  std::atomic<uint32_t> wrong{0};
  std::vector<std::thread> workers;
  const double begin = now_ms();
  for (uint32_t thread = 0; thread < threads; ++thread) {
    workers.emplace_back([&, thread] {
      const Words out(filled(thread), slow);
      constexpr uint32_t no_groups = 0;  // llvmpipe compiles a kernel once more when it first runs: none does here
      run(programs[thread], {&out}, {}, no_groups, slow.stream);
      run(add_constant, {&out}, {1}, 1, slow.stream);
      if (out.get() != filled(thread + 1)) ++wrong;
    });
  }
  for (auto& worker : workers) worker.join();
  const double elapsed = now_ms() - begin;
  CHECK(wrong == 0);
  CHECK(elapsed >= kDelayMs);
  CHECK(elapsed < 3 * kDelayMs);  // one after another: ten
}

TEST_CASE("deferred: threads that need one kernel compile it once") {
  auto& slow = slow_runtime();
  const Program shared = affine(3);
  const auto before = slow.stream.stats();
  std::atomic<uint32_t> wrong{0};
  std::vector<std::thread> workers;
  for (uint32_t thread = 0; thread < 6; ++thread) {
    workers.emplace_back([&, thread] {
      const Words out(filled(thread), slow);
      run(shared, {&out}, {}, 1, slow.stream);
      if (out.get() != filled(thread * 3 + 1)) ++wrong;
    });
  }
  for (auto& worker : workers) worker.join();
  CHECK(wrong == 0);
  CHECK(slow.stream.stats().kernels_compiled == before.kernels_compiled + 1);
}

TEST_CASE("deferred: compiling and encoding at once, from many threads") {
  auto& stream = runtime().stream;
  constexpr uint32_t threads = 4, kernels = 6;
  std::vector<Program> programs;
  for (uint32_t i = 0; i < threads * kernels; ++i) programs.push_back(affine(i));
  std::atomic<uint32_t> wrong{0};
  std::vector<std::thread> workers;
  for (uint32_t thread = 0; thread < threads; ++thread) {
    workers.emplace_back([&, thread] {
      const Words out(filled(1));
      uint32_t expected = 1;
      for (uint32_t i = 0; i < kernels; ++i) {
        const uint32_t which = thread * kernels + i;
        run(programs[which], {&out}, {}, 1, stream);
        for (uint32_t n = 0; n < 10; ++n) run(add_constant, {&out}, {n}, 1, stream);
        expected = expected * which + 46;
        if (i % 3 == 0 && out.get() != filled(expected)) ++wrong;
        if (i % 4 == 0) runtime().pool.trim();
      }
      if (out.get() != filled(expected)) ++wrong;
    });
  }
  for (auto& worker : workers) worker.join();
  CHECK(wrong == 0);
}

TEST_CASE("deferred: what does not compile is raised once by whoever waits next, and names the op") {
  auto& stream = runtime().stream;
  const Words out(filled(1));
  const Program other{"also_broken_f32", 1, "m0[id.x] = m7[id.x];"};
  Event event(false);
  const auto synchronize = [&] { stream.synchronize(); };
  const auto read = [&] { out.get(); };
  const auto wait = [&] { stream.wait(event); };
  for (uint32_t i = 0; i < 3; ++i) {
    run(broken, {&out}, {}, 1, stream);
    run(add_constant, {&out}, {1}, 1, stream);
    stream.record(event);
    const auto message = i == 0   ? message_of<Error>(synchronize)
                         : i == 1 ? message_of<Error>(read)
                                  : message_of<Error>(wait);
    CHECK(contains(message, "the kernel of broken_f32 does not compile: "));
    stream.synchronize();
    CHECK(out.get() == filled(2 + i));
  }
  run(broken, {&out}, {}, 1, stream);
  run(other, {&out}, {}, 1, stream);
  const auto message = message_of<Error>(synchronize);
  CHECK(contains(message, "broken_f32"));
  CHECK(contains(message, "also_broken_f32"));
  CHECK(out.get() == filled(4));
}

TEST_CASE("deferred: with TORCH_WEBGPU_SYNC an op raises what is wrong with its kernel") {
  setenv("TORCH_WEBGPU_SYNC", "1", 1);
  auto& careful = open_runtime();
  unsetenv("TORCH_WEBGPU_SYNC");
  const Words out(filled(1), careful);
  for (int i = 0; i < 2; ++i) {
    CHECK(contains(message_of<Error>([&] { run(broken, {&out}, {}, 1, careful.stream); }), "broken_f32"));
  }
  run(add_constant, {&out}, {1}, 1, careful.stream);
  careful.stream.synchronize();
  CHECK(out.get() == filled(2));
}

TEST_CASE("deferred: a kernel that is asked for beforehand is waited for") {
  auto& slow = slow_runtime();
  const Program triple = affine(3);
  const Words out(filled(2), slow);
  const double begin = now_ms();
  slow.stream.prepare(make_launch(triple, {out.binding()}));
  CHECK(now_ms() - begin >= kDelayMs);
  const auto prepare = [&] { slow.stream.prepare(make_launch(broken, {out.binding()})); };
  CHECK(contains(message_of<Error>(prepare), "broken_f32"));
  slow.stream.synchronize();  // said already
}

TEST_CASE("deferred: kernels that leave the cache before their turn") {
  setenv("TORCH_WEBGPU_TEST_COMPILE_MS", "20", 1);
  KernelCache kernels(runtime().device, /*capacity=*/4);
  unsetenv("TORCH_WEBGPU_TEST_COMPILE_MS");
  Stream stream(runtime().device, kernels);
  const Words out(filled(1));
  std::vector<Program> programs;
  uint32_t expected = 1;
  for (uint32_t i = 0; i < 15; ++i) {
    programs.push_back(affine(i + 1));
    expected = expected * (i + 1) + 1;
  }
  for (const auto& program : programs) {
    run(program, {&out}, {}, 1, stream);
    REQUIRE(kernels.size() <= 4);
  }
  stream.synchronize();
  CHECK(kernels.compiled() == 15);
  CHECK(out.get() == filled(expected));
}

TEST_CASE("deferred: a cache that goes does not compile what nobody waits for") {
  const Words out(filled(1));
  std::vector<Program> programs;
  for (uint32_t i = 0; i < 40; ++i) programs.push_back(affine(i));
  const double begin = now_ms();
  {
    setenv("TORCH_WEBGPU_TEST_COMPILE_MS", "200", 1);
    KernelCache kernels(runtime().device);
    unsetenv("TORCH_WEBGPU_TEST_COMPILE_MS");
    Stream stream(runtime().device, kernels);
    for (const auto& program : programs) run(program, {&out}, {}, 1, stream);
  }
  CHECK(now_ms() - begin < 1500);  // forty on four threads: 2000
}

TEST_CASE("deferred: a tape that is recorded and replayed while its kernel is compiled") {
  auto& slow = slow_runtime();
  const Program triple = affine(3);
  const Words out(filled(2), slow), other(filled(5), slow);
  Tape tape({&out.buffer()});
  const double begin = now_ms();
  REQUIRE(slow.stream.record_to(tape));
  run(triple, {&out}, {}, 1, slow.stream);
  run(add_constant, {&out}, {4}, 1, slow.stream);
  slow.stream.stop_recording();
  REQUIRE(tape.failure() == "");
  const Buffer* slots[] = {&other.buffer()};
  slow.stream.replay(tape, slots);
  slow.stream.replay(tape, slots);
  CHECK(now_ms() - begin < kDelayMs / 2);
  CHECK(out.get() == filled(11));
  CHECK(other.get() == filled(65));
}

TEST_CASE("deferred: buffers that are given back while launches wait") {
  auto& slow = slow_runtime();
  const Program triple = affine(3), add_three{"add_three", 2, "m0[id.x] += m1[id.x] + 3u;"};
  const Words out(filled(1), slow);
  {
    const Words temporary(filled(5), slow);
    run(triple, {&temporary}, {}, 1, slow.stream);
    run(add_three, {&out, &temporary}, {}, 1, slow.stream);
  }
  slow.pool.trim();  // destroys the temporary one, after its last use
  CHECK(out.get() == filled(20));
  const Words reused(filled(7), slow);
  CHECK(reused.get() == filled(7));
}

TEST_CASE("deferred: more than is put aside") {
  auto& slow = slow_runtime();
  const Words out(filled(1), slow);
  const Program triple = affine(3), quadruple = affine(4);
  run(triple, {&out}, {}, 1, slow.stream);
  for (int i = 0; i < 10'000; ++i) run(add_constant, {&out}, {1}, 1, slow.stream);
  CHECK(out.get() == filled(10'004));

  const Words large((uint64_t{66} << 20) / 4, slow);
  const std::vector<char> bytes(uint64_t{66} << 20, 1);
  run(quadruple, {&large}, {}, 1, slow.stream);
  slow.stream.write(large.buffer(), 0, bytes.data(), bytes.size());
  run(add_constant, {&large}, {1}, 1, slow.stream);
  uint32_t words[65];
  slow.stream.read(large.buffer(), 0, words, sizeof(words));
  CHECK(words[0] == 0x01010102);
  CHECK(words[64] == 0x01010101);
}

TEST_CASE("deferred: a profile has the launches that were made while it ran") {
  auto& slow = slow_runtime();
  const Words out(filled(2), slow);
  const Program before = affine(3), during = affine(4), after = affine(5);
  run(before, {&out}, {}, 1, slow.stream);
  Profile profile;
  profile.start();
  run(during, {&out}, {}, 1, slow.stream);
  run(add_constant, {&out}, {1}, 1, slow.stream);
  profile.stop(&slow.stream);
  run(after, {&out}, {}, 1, slow.stream);
  REQUIRE(profile.dispatches().size() == 2);
  CHECK(*profile.dispatches()[0].label == during.label);
  CHECK(*profile.dispatches()[1].label == "add_constant");
  CHECK(out.get() == filled(151));
}

TEST_CASE("deferred: a device lost while launches wait") {
  auto& slow = slow_runtime();
  const Words out(filled(2), slow);
  const Program triple = affine(3);
  Event event(false);
  run(triple, {&out}, {}, 1, slow.stream);
  slow.stream.record(event);
  slow.stream.lose_device();
  CHECK_THROWS_AS(run(add_constant, {&out}, {1}, 1, slow.stream), DeviceLostError);
  CHECK_THROWS_AS(slow.stream.wait(event), DeviceLostError);
  CHECK_THROWS_AS(slow.stream.synchronize(), DeviceLostError);
}

}  // namespace torch_webgpu
