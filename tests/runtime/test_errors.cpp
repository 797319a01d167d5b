// What WebGPU reports late becomes an Error at the next wait, and a lost device says so for ever.
#include <cstdlib>
#include <thread>

#include "support.h"

namespace torch_webgpu {
using namespace test;

namespace {

// A copy that ends behind the end of its target.
void copy_out_of_range(Runtime& on, const Words& from, const Words& to) {
  on.stream.copy(from.buffer(), 0, to.buffer(), to.buffer().size_bytes - 4, 64);
}

void check_works(Runtime& on = runtime()) {
  const Words a(std::vector<uint32_t>(64, 1), on), b(std::vector<uint32_t>(64, 2), on);
  run(add_buffer, {&a, &b}, {}, 1, on.stream);
  CHECK(a.get() == std::vector<uint32_t>(64, 3));
  on.stream.synchronize();
}

// Every way into the runtime, on one that has lost its device.
void check_lost(Runtime& lost, const Words& a, const Words& b, Event& pending) {
  auto& stream = lost.stream;
  uint32_t word = 0;
  CHECK_THROWS_AS(run(add_constant, {&a}, {1}, 1, stream), DeviceLostError);
  CHECK_THROWS_AS(stream.copy(a.buffer(), 0, b.buffer(), 0, 4), DeviceLostError);
  CHECK_THROWS_AS(stream.write(a.buffer(), 0, &word, 4), DeviceLostError);
  CHECK_THROWS_AS(stream.read(a.buffer(), 0, &word, 4), DeviceLostError);
  CHECK_THROWS_AS(stream.flush(), DeviceLostError);
  CHECK_THROWS_AS(stream.synchronize(), DeviceLostError);
  CHECK_THROWS_AS(stream.is_idle(), DeviceLostError);
  CHECK_THROWS_AS(lost.pool.allocate(64), DeviceLostError);
  CHECK_THROWS_AS(lost.pool.allocate(1 << 22), DeviceLostError);
  CHECK_THROWS_AS(lost.pool.trim(), DeviceLostError);
  Event event(true);
  CHECK_THROWS_AS(stream.record(event), DeviceLostError);
  CHECK_THROWS_AS(stream.elapsed_ms(pending, pending), DeviceLostError);
  CHECK(contains(message_of<DeviceLostError>([&] { stream.synchronize(); }), "lost"));
}

}  // namespace

TEST_CASE("errors: an invalid copy is reported by synchronize and the device goes on") {
  auto& stream = runtime().stream;
  const Words a(std::vector<uint32_t>(64, 1)), b(std::vector<uint32_t>(64, 2));
  run(add_constant, {&a}, {1});
  stream.synchronize();
  copy_out_of_range(runtime(), a, b);
  const auto message = message_of<Error>([&] { stream.synchronize(); });
  CHECK(contains(message, "add_constant"));  // among the last operations
  CHECK(message.size() > 100);               // and what WebGPU says of it
  stream.synchronize();                      // said once
  CHECK(b.get() == std::vector<uint32_t>(64, 2));
  check_works();
}

TEST_CASE("errors: an error is reported by a readback and the next readback works") {
  const Words a(std::vector<uint32_t>(64, 1)), b(std::vector<uint32_t>(64, 2));
  for (int i = 0; i < 3; ++i) {
    copy_out_of_range(runtime(), a, b);
    runtime().stream.flush();
    CHECK_THROWS_AS(b.get(), Error);
    CHECK(b.get() == std::vector<uint32_t>(64, 2));
    copy_out_of_range(runtime(), a, b);
    CHECK_THROWS_AS(b.get(), Error);  // this time in one batch with the readback
    CHECK(b.get() == std::vector<uint32_t>(64, 2));
  }
  check_works();
}

TEST_CASE("errors: an error is reported by waiting for an event") {
  const Words a(std::vector<uint32_t>(64, 1)), b(std::vector<uint32_t>(64, 2));
  auto& stream = runtime().stream;
  copy_out_of_range(runtime(), a, b);
  Event event(false);
  stream.record(event);
  const auto wait_then_synchronize = [&] {
    stream.wait(event);
    stream.synchronize();
  };
  CHECK_THROWS_AS(wait_then_synchronize(), Error);
  CHECK(stream.is_complete(event));
  check_works();
}

TEST_CASE("errors: too large a grid is an error that names the op") {
  const Words out(std::vector<uint32_t>(64, 0));
  const Program oversized{"oversized", 1, "if (id.x == 0u) { m0[0] = 1u; }"};
  const uint32_t most = runtime().device.limits.maxComputeWorkgroupsPerDimension;
  const auto message = message_of<Error>([&] {
    run(oversized, {&out}, {}, most + 1);
    runtime().stream.synchronize();
  });
  CHECK(contains(message, "oversized"));
  check_works();
}

TEST_CASE("errors: a buffer that is bound twice") {
  const Words out(std::vector<uint32_t>(64, 5));
  auto& stream = runtime().stream;
  stream.dispatch(make_launch(add_buffer, {out.binding(), out.binding()}));
  if (runtime().device.api.is_wgpu_native()) {  // which lets it pass
    stream.synchronize();
  } else {
    CHECK(contains(message_of<Error>([&] { stream.synchronize(); }), "add_buffer"));
    CHECK(out.get() == std::vector<uint32_t>(64, 5));
  }
  check_works();
}

TEST_CASE("errors: an error of one thread harms no other for long") {
  const Words a(std::vector<uint32_t>(64, 1)), b(std::vector<uint32_t>(64, 2));
  std::thread([&] { copy_out_of_range(runtime(), a, b); }).join();
  CHECK_THROWS_AS(runtime().stream.synchronize(), Error);
  check_works();
}

TEST_CASE("errors: TORCH_WEBGPU_SYNC submits and checks each op") {
  setenv("TORCH_WEBGPU_SYNC", "1", 1);
  auto& careful = open_runtime();
  unsetenv("TORCH_WEBGPU_SYNC");
  const Words out(std::vector<uint32_t>(64, 0), careful), other(std::vector<uint32_t>(64, 0), careful);
  const auto before = careful.stream.stats();
  for (int i = 0; i < 20; ++i) run(add_constant, {&out}, {1}, 1, careful.stream);
  CHECK(careful.stream.stats().submits - before.submits == 20);
  const Program culprit{"culprit", 1, "m0[0] = 1u;"};
  const uint32_t most = careful.device.limits.maxComputeWorkgroupsPerDimension;
  const auto message = message_of<Error>([&] { run(culprit, {&out}, {}, most + 1, careful.stream); });
  CHECK(contains(message, "culprit"));
  CHECK_FALSE(contains(message, "add_constant"));
  CHECK_THROWS_AS(copy_out_of_range(careful, out, other), Error);
  CHECK(out.get() == std::vector<uint32_t>(64, 20));
  check_works(careful);
}

TEST_CASE("errors: a lost device is reported by every call") {
  auto& lost = open_runtime();
  const Words a(std::vector<uint32_t>(64, 1), lost), b(std::vector<uint32_t>(64, 1), lost);
  lost.pool.release(lost.pool.allocate(64));
  check_works(lost);
  Event before(true);
  lost.stream.record(before);
  lost.stream.wait(before);
  lost.device.destroy();
  CHECK(lost.device.is_lost());
  for (int i = 0; i < 2; ++i) check_lost(lost, a, b, before);
  check_works();  // on the other device of this process
}

TEST_CASE("errors: a device lost with work recorded and in flight") {
  const uint32_t rounds = rounds_for(100);
  auto& lost = open_runtime();
  const Words a(std::vector<uint32_t>(64, 1), lost), b(std::vector<uint32_t>(64, 1), lost);
  run(spin, {&a}, {rounds}, 1, lost.stream);
  Event pending(true);
  lost.stream.record(pending);
  run(add_buffer, {&a, &b}, {}, 1, lost.stream);
  lost.device.destroy();
  check_lost(lost, a, b, pending);
  try {
    lost.stream.wait(pending);
  } catch (const DeviceLostError&) {  // NOLINT(bugprone-empty-catch): either outcome is right
  }
  check_works();
}

TEST_CASE("errors: a device lost while another thread waits") {
  const uint32_t rounds = rounds_for(300);
  auto& lost = open_runtime();
  const Words a(std::vector<uint32_t>(64, 1), lost), b(std::vector<uint32_t>(64, 1), lost);
  run(spin, {&a}, {1}, 1, lost.stream);
  Event done(true);
  lost.stream.record(done);
  lost.stream.wait(done);
  run(spin, {&a}, {rounds}, 1, lost.stream);
  std::thread waiter([&] {
    try {
      lost.stream.synchronize();
    } catch (const DeviceLostError&) {  // NOLINT(bugprone-empty-catch): either outcome is right
    }
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  lost.device.destroy();
  waiter.join();
  check_lost(lost, a, b, done);
}

}  // namespace torch_webgpu

namespace torch_webgpu {
using namespace test;

TEST_CASE("errors: an index that a kernel reports is raised once by whoever waits next") {
  const Program report{"report", 2,
                       "if (id.x == 0u) { m0[0] = 7u; m1[0] = 1u; m1[1] = p[0].x; m1[2] = 9u; m1[3] = 0u; m1[4] = 2u;"
                       "m1[5] = 5u; }"};
  const Words out(64);
  Stream& stream = runtime().stream;
  const auto launch = [&] {
    Launch launch = make_launch(report, {out.binding(), {&stream.status(), 0, 0}}, {0});
    launch.reports = true;
    stream.dispatch(launch);
  };
  launch();
  const std::string read = message_of<IndexError>([&] { out.get(); });
  CHECK(contains(read, "index 9 is out of bounds for dimension 2 with size 5"));
  CHECK(contains(read, "report"));
  CHECK(out.get()[0] == 7);
  launch();
  CHECK(contains(message_of<IndexError>([&] { stream.synchronize(); }), "index 9"));
  stream.synchronize();
}

}  // namespace torch_webgpu
