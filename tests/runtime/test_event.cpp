// Events: points in the stream that can be asked for, waited on and timed.
#include <thread>

#include "support.h"

namespace torch_webgpu {
using namespace test;

TEST_CASE("events: one that was never recorded is complete") {
  auto& stream = runtime().stream;
  Event event(false), timed(true);
  CHECK(stream.is_complete(event));
  stream.wait(event);
  CHECK_THROWS_AS(stream.elapsed_ms(event, timed), Error);
  stream.forget(event);
}

TEST_CASE("events: not complete before the work and complete after it") {
  auto& stream = runtime().stream;
  const uint32_t rounds = rounds_for(150);
  for (const bool timing : {false, true}) {
    const Words out(std::vector<uint32_t>(64, 0));
    Event event(timing);
    run(spin, {&out}, {rounds});
    stream.record(event);
    CHECK_FALSE(stream.is_complete(event));
    const double begin = now_ms();
    while (!stream.is_complete(event)) {
      REQUIRE(now_ms() - begin < 60'000);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    CHECK(now_ms() - begin > 20);
    stream.wait(event);
    stream.forget(event);
  }
}

TEST_CASE("events: waiting waits for what was recorded before") {
  auto& stream = runtime().stream;
  const uint32_t rounds = rounds_for(150);
  const Words out(std::vector<uint32_t>(64, 0));
  Event first(false), second(false);
  run(spin, {&out}, {rounds});
  stream.record(first);
  run(spin, {&out}, {rounds});
  stream.record(second);
  stream.wait(first);
  CHECK(stream.is_complete(first));
  // wgpu-native knows only how to wait for all that was submitted.
  if (!runtime().device.api.is_wgpu_native()) CHECK_FALSE(stream.is_complete(second));
  stream.wait(second);
  CHECK(stream.is_complete(second));
  stream.wait(second);  // again, with nothing to wait for
  CHECK(stream.is_idle());
}

TEST_CASE("events: recording again moves the point") {
  auto& stream = runtime().stream;
  const uint32_t rounds = rounds_for(100);
  const Words out(std::vector<uint32_t>(64, 0));
  Event event(true);
  stream.record(event);
  stream.wait(event);
  run(spin, {&out}, {rounds});
  stream.record(event);
  CHECK_FALSE(stream.is_complete(event));
  stream.synchronize();
  CHECK(stream.is_complete(event));
  stream.forget(event);
}

TEST_CASE("events: elapsed time agrees with the host's clock") {
  auto& stream = runtime().stream;
  const uint32_t rounds = rounds_for(300);
  const Words out(std::vector<uint32_t>(64, 0));
  for (const bool timing : {true, false}) {
    Event begin(timing), end(timing);
    stream.synchronize();
    const double host_begin = now_ms();
    stream.record(begin);
    if (!timing) stream.wait(begin);  // without timestamps a point has the time at which the host saw it
    run(spin, {&out}, {rounds});
    stream.record(end);
    stream.wait(end);
    const double host_ms = now_ms() - host_begin, device_ms = stream.elapsed_ms(begin, end);
    INFO("host ", host_ms, " ms, device ", device_ms, " ms, timing ", timing);
    CHECK(device_ms <= host_ms * 1.02 + 1);
    CHECK(device_ms >= host_ms * 0.5);
    CHECK(stream.elapsed_ms(end, begin) == doctest::Approx(-device_ms));
    CHECK(stream.elapsed_ms(begin, begin) == 0);
    stream.forget(begin);
    stream.forget(end);
  }
}

TEST_CASE("events: asking for a time does not disturb what is recorded") {
  auto& stream = runtime().stream;
  const Words out(std::vector<uint32_t>(64, 0));
  Event begin(true), end(true);
  stream.record(begin);
  run(add_constant, {&out}, {1});
  stream.record(end);
  run(add_constant, {&out}, {1});
  CHECK(stream.elapsed_ms(begin, end) > 0);
  run(add_constant, {&out}, {1});
  CHECK(out.get() == std::vector<uint32_t>(64, 3));
  stream.forget(begin);
  stream.forget(end);
}

TEST_CASE("events: time grows from point to point and with the work") {
  auto& stream = runtime().stream;
  const uint32_t rounds = rounds_for(40);
  const Words out(std::vector<uint32_t>(64, 0));
  std::vector<std::unique_ptr<Event>> events;
  const auto record = [&] {
    events.push_back(std::make_unique<Event>(true));
    stream.record(*events.back());
  };
  record();
  for (uint32_t i = 1; i <= 4; ++i) {
    run(spin, {&out}, {rounds * i});
    record();
  }
  double before = 0;
  for (size_t i = 1; i < events.size(); ++i) {
    const double since = stream.elapsed_ms(*events[0], *events[i]);
    CHECK(since > before);
    before = since;
  }
  CHECK(stream.elapsed_ms(*events[3], *events[4]) > stream.elapsed_ms(*events[0], *events[1]) * 1.5);
  for (const auto& event : events) stream.forget(*event);
}

TEST_CASE("events: timestamps are taken back by forget") {
  auto& stream = runtime().stream;
  for (int i = 0; i < 3000; ++i) {
    Event event(true);
    stream.record(event);
    stream.forget(event);
  }
  if (!runtime().device.has_timestamps) return;
  std::vector<std::unique_ptr<Event>> alive;
  for (int i = 0; i < 3000; ++i) {  // more than one set of queries holds
    alive.push_back(std::make_unique<Event>(true));
    stream.record(*alive.back());
  }
  CHECK(stream.elapsed_ms(*alive.front(), *alive.back()) > 0);
  for (const auto& event : alive) stream.forget(*event);
  Event event(true);
  stream.record(event);
  stream.wait(event);
  stream.forget(event);
}

TEST_CASE("events: many in flight with work between") {
  auto& stream = runtime().stream;
  const Words out(std::vector<uint32_t>(64, 0));
  std::vector<std::unique_ptr<Event>> events;
  for (int i = 0; i < 500; ++i) {
    run(add_constant, {&out}, {1});
    events.push_back(std::make_unique<Event>(false));
    stream.record(*events.back());
    if (i % 7 == 0) events.erase(events.begin());  // gone before it is complete
  }
  stream.wait(*events.back());
  for (const auto& event : events) CHECK(stream.is_complete(*event));
  CHECK(out.get() == std::vector<uint32_t>(64, 500));
}

}  // namespace torch_webgpu
