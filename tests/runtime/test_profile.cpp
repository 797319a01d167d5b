// Profiles: the device's time of each dispatch, and the host's.
#include <thread>

#include "runtime/profile.h"
#include "support.h"

namespace torch_webgpu {
using namespace test;

TEST_CASE("profile: each dispatch has its label and its grid and its time") {
  auto& stream = runtime().stream;
  const uint32_t rounds = rounds_for(60);
  const Words out(std::vector<uint32_t>(256, 0));
  run(add_constant, {&out}, {1});  // before it: not in it
  Profile profile;
  profile.start();
  run(add_constant, {&out}, {1}, 4);
  run(spin, {&out}, {rounds});
  run(spin, {&out}, {rounds * 3});
  profile.stop(&stream);
  run(add_constant, {&out}, {1});  // nor after it
  const auto& dispatches = profile.dispatches();
  REQUIRE(dispatches.size() == 3);
  CHECK(*dispatches[0].label == add_constant.label);
  CHECK(*dispatches[1].label == spin.label);
  CHECK(dispatches[0].grid[0] == 4);
  CHECK(dispatches[0].op->empty());
  for (const auto& dispatch : dispatches) {
    CHECK(dispatch.host_begin_ns > 0);
    CHECK(dispatch.host_ns >= 0);
  }
  CHECK(profile.has_device_times() == runtime().device.has_timestamps);
  if (!profile.has_device_times()) return;
  CHECK(dispatches[1].device_ns > 15'000'000);
  CHECK(dispatches[2].device_ns > dispatches[1].device_ns * 3 / 2);
  for (size_t i = 1; i < 3; ++i) {  // in order, one after the other, and none before the host recorded it
    CHECK(dispatches[i].device_begin_ns >= dispatches[i - 1].device_begin_ns + dispatches[i - 1].device_ns);
    CHECK(dispatches[i].device_begin_ns >= dispatches[i].host_begin_ns);
  }
}

TEST_CASE("profile: results and batches are what they are without") {
  auto& stream = runtime().stream;
  const Words out(std::vector<uint32_t>(64, 0)), two(std::vector<uint32_t>(64, 2));
  const auto submits = stream.stats().submits;
  Profile profile;
  profile.start();
  for (int i = 0; i < 1000; ++i) {
    run(add_constant, {&out}, {1});
    run(add_buffer, {&out, &two});
    if (i % 100 == 0) stream.copy(two.buffer(), 0, out.buffer(), 0, 16);
  }
  const std::vector<uint32_t> values = out.get();
  profile.stop(&stream);
  CHECK(values[63] == 3000);
  CHECK(values[0] == 2 + 3 * 99);
  REQUIRE(profile.dispatches().size() == 2000);
  CHECK(stream.stats().submits - submits < 80);
  if (!profile.has_device_times()) return;
  for (const auto& dispatch : profile.dispatches()) CHECK(dispatch.device_ns >= 0);
}

TEST_CASE("profile: one after the other and one at a time") {
  auto& stream = runtime().stream;
  const Words out(std::vector<uint32_t>(64, 0));
  for (int i = 0; i < 3; ++i) {
    Profile profile, second;
    profile.start();
    CHECK(contains(message_of<Error>([&] { second.start(); }), "a profile is running already"));
    for (int j = 0; j < 70; ++j) run(add_constant, {&out}, {1});  // more than one batch
    profile.stop(&stream);
    CHECK(profile.dispatches().size() == 70);
    profile.stop(&stream);  // again, with nothing to do
    second.start();
    second.stop(nullptr);
    CHECK(second.dispatches().empty());
  }
  CHECK(out.get() == std::vector<uint32_t>(64, 210));
}

TEST_CASE("profile: dispatches carry the operation and what their thread had set") {
  auto& stream = runtime().stream;
  const Words first(std::vector<uint32_t>(64, 0)), second(std::vector<uint32_t>(64, 0));
  Profile profile;
  profile.start();
  const auto work = [&](const Words& out, uint64_t id, const char* op) {
    Profile::set_correlation(id);
    const OpScope scope(op);
    for (int i = 0; i < 50; ++i) run(add_constant, {&out}, {1});
    Profile::set_correlation(0);
  };
  std::thread other([&] { work(first, 7, "aten::seven"); });
  work(second, 8, "aten::eight");
  other.join();
  profile.stop(&stream);
  REQUIRE(profile.dispatches().size() == 100);
  int sevens = 0;
  for (const auto& dispatch : profile.dispatches()) {
    CHECK(*dispatch.op == (dispatch.correlation == 7 ? "aten::seven" : "aten::eight"));
    sevens += dispatch.correlation == 7;
    CHECK((dispatch.thread == profile.dispatches()[0].thread) ==
          (dispatch.correlation == profile.dispatches()[0].correlation));
  }
  CHECK(sevens == 50);
}

TEST_CASE("profile: bytes are those that the launch names") {
  auto& stream = runtime().stream;
  const Words out(std::vector<uint32_t>(64, 0));
  Profile profile;
  profile.start();
  run(add_constant, {&out}, {1});
  Launch launch = make_launch(add_constant, {out.binding()}, {1});
  launch.bytes = 256;
  stream.dispatch(launch);
  profile.stop(&stream);
  REQUIRE(profile.dispatches().size() == 2);
  CHECK(profile.dispatches()[0].bytes == 0);
  CHECK(profile.dispatches()[1].bytes == 256);
  CHECK(out.get() == std::vector<uint32_t>(64, 2));
}

TEST_CASE("profile: an adapter without timestamps leaves the host's times") {
  runtime().device.has_timestamps = false;
  const Words out(std::vector<uint32_t>(64, 0));
  Profile profile;
  profile.start();
  for (int i = 0; i < 100; ++i) run(add_constant, {&out}, {1});
  profile.stop(&runtime().stream);
  CHECK(!profile.has_device_times());
  REQUIRE(profile.dispatches().size() == 100);
  for (const auto& dispatch : profile.dispatches()) {
    CHECK(dispatch.device_ns == -1);
    CHECK(dispatch.host_begin_ns > 0);
  }
  CHECK(out.get()[0] == 100);
}

TEST_CASE("profile: starting and stopping while another thread dispatches") {
  auto& stream = runtime().stream;
  const Words out(std::vector<uint32_t>(64, 0));
  std::atomic<bool> stop{false};
  uint32_t count = 0;
  std::thread other([&] {
    while (!stop) {
      run(add_constant, {&out}, {1});
      ++count;
    }
  });
  for (int i = 0; i < 20; ++i) {
    Profile profile;
    profile.start();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    profile.stop(&stream);
    for (const auto& dispatch : profile.dispatches()) {
      if (profile.has_device_times()) CHECK(dispatch.device_ns >= 0);
    }
  }
  stop = true;
  other.join();
  CHECK(out.get()[0] == count);
}

}  // namespace torch_webgpu
