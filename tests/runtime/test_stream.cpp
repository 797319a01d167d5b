// Dispatches, parameters, copies, uploads and readbacks: right numbers, in order, from any thread, without waiting.
#include <atomic>
#include <cstring>
#include <fstream>
#include <thread>

#include "runtime/bindings.h"
#include "support.h"

namespace torch_webgpu {
using namespace test;

namespace {

std::vector<uint8_t> pattern(uint64_t size) {
  std::vector<uint8_t> bytes(size);
  uint32_t state = 2463534242u;
  for (auto& byte : bytes) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    byte = static_cast<uint8_t>(state >> 11);
  }
  return bytes;
}

uint64_t resident_bytes() {
  uint64_t size = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * 4096;
}

}  // namespace

TEST_CASE("stream: a dispatch computes over its grid") {
  const uint32_t count = 64 * 100;
  std::vector<uint32_t> a(count), b(count), expected(count);
  for (uint32_t i = 0; i < count; ++i) {
    a[i] = i * 2654435761u;
    b[i] = ~i;
    expected[i] = a[i] + b[i] * 3 + i;
  }
  const Program formula{"formula", 3, "m0[id.x] = m1[id.x] + m2[id.x] * p[0].y + id.x;"};
  const Words out(count), left(a), right(b);
  run(formula, {&out, &left, &right}, {0, 3}, 100);
  CHECK(out.get() == expected);
}

TEST_CASE("stream: all three dimensions of a grid") {
  const Program place{"place", 1, "m0[id.x + 3u * (id.y + 5u * id.z)] = id.x + 10u * id.y + 100u * id.z;", "1"};
  const Words out(std::vector<uint32_t>(3 * 5 * 7, 0));
  Launch launch = make_launch(place, {out.binding()});
  launch.grid[0] = 3;
  launch.grid[1] = 5;
  launch.grid[2] = 7;
  runtime().stream.dispatch(launch);
  const auto result = out.get();
  for (uint32_t z = 0; z < 7; ++z) {
    for (uint32_t y = 0; y < 5; ++y) {
      for (uint32_t x = 0; x < 3; ++x) CHECK(result[x + 3 * (y + 5 * z)] == x + 10 * y + 100 * z);
    }
  }
}

TEST_CASE("stream: each of 2000 dispatches in flight sees its own parameters") {
  constexpr uint32_t count = 2000;
  const uint32_t sizes[] = {4, 63, 64, 65, 128, 129, 200, 255, 256};  // in words; 64 fill one slot
  const Program sum{"sum_of_params", 1,
                    "if (id.x == 0u) { var sum = 0u; for (var i = 2u; i < p[0].y; i++) { sum += p[i / 4u][i % 4u]; }"
                    "m0[p[0].x] = sum; }",
                    "1"};
  const Words out(std::vector<uint32_t>(count, 0));
  std::vector<uint32_t> expected(count);
  const auto before = runtime().stream.stats();
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t size = sizes[i % std::size(sizes)];
    std::vector<uint32_t> params(size);
    params[0] = i;
    params[1] = size;
    for (uint32_t word = 2; word < size; ++word) expected[i] += params[word] = i * 7919 + word * 104729;
    run(sum, {&out}, params);
  }
  CHECK(out.get() == expected);
  const auto after = runtime().stream.stats();
  CHECK(after.dispatches - before.dispatches == count);
  CHECK(after.submits - before.submits <= count / 50);
}

TEST_CASE("stream: many dispatches share a submit") {
  auto& stream = runtime().stream;
  const Words out(std::vector<uint32_t>(64, 0));
  run(add_constant, {&out}, {0});  // compiles: what comes behind a kernel that is not ready is submitted later
  stream.synchronize();
  const auto before = stream.stats();
  for (int i = 0; i < 3200; ++i) run(add_constant, {&out}, {1});
  stream.flush();
  const auto after = stream.stats();
  CHECK(after.dispatches - before.dispatches == 3200);
  CHECK(after.submits > before.submits);
  CHECK(after.submits - before.submits <= 3200 / 64 + 3);  // the first batches after a wait are small
  stream.flush();
  CHECK(stream.stats().submits == after.submits);  // nothing was recorded
  CHECK(out.get() == std::vector<uint32_t>(64, 3200));
}

TEST_CASE("stream: batches grow after a wait, and end before much work") {
  BatchLimit batch(8, 64);
  const auto commands = [&](uint64_t bytes, uint64_t flops) {
    uint32_t count = 1;
    while (!batch.add(bytes, flops)) ++count;
    batch.submitted();
    return count;
  };
  for (const uint32_t expected : {8, 16, 32, 64, 64}) CHECK(commands(4096, 0) == expected);
  CHECK(commands(uint64_t{100} << 20, 0) == 3);
  CHECK(commands(0, 1'000'000'000) == 4);
  CHECK(commands(0, 0) == 64);
  batch.waited();
  CHECK(commands(0, 0) == 8);
  batch.add(0, 0);
  batch.submitted();  // by somebody who does not wait for it to be full
  CHECK(commands(0, 0) == 16);
}

TEST_CASE("stream: the device begins early after a wait") {
  auto& stream = runtime().stream;
  const Words out(std::vector<uint32_t>(64, 0));
  run(add_constant, {&out}, {0});
  stream.synchronize();
  const auto before = stream.stats().submits;
  for (int i = 0; i < 40; ++i) run(add_constant, {&out}, {1});
  // wgpu-native's submits cost too much for that.
  CHECK((stream.stats().submits > before) == !runtime().device.api.is_wgpu_native());
  CHECK(out.get() == std::vector<uint32_t>(64, 40));
}

TEST_CASE("stream: a write does not overtake what is recorded") {
  auto& stream = runtime().stream;
  Words source(std::vector<uint32_t>(64, 1)), target(std::vector<uint32_t>(64, 0));
  uint32_t expected = 0;
  for (uint32_t i = 2; i < 200; ++i) {
    run(add_buffer, {&target, &source});
    expected += i - 1;
    source.get();
    run(add_buffer, {&target, &source});
    expected += i - 1;
    source.set(std::vector<uint32_t>(64, i));
  }
  CHECK(target.get() == std::vector<uint32_t>(64, expected));
  const Words copied(64);
  stream.copy(source.buffer(), 0, copied.buffer(), 0, 256);
  source.set(std::vector<uint32_t>(64, 0));
  CHECK(copied.get() == std::vector<uint32_t>(64, 199));
  CHECK(source.get() == std::vector<uint32_t>(64, 0));
}

TEST_CASE("stream: dispatches and copies and writes and reads keep their order") {
  constexpr uint32_t buffers = 5, size = 64;
  std::vector<std::unique_ptr<Words>> device;
  std::vector<std::vector<uint32_t>> host(buffers, std::vector<uint32_t>(size, 1));
  for (const auto& values : host) device.push_back(std::make_unique<Words>(values));
  uint32_t state = 1;
  const auto random = [&](uint32_t below) { return (state = state * 1664525 + 1013904223) / 65536 % below; };
  for (int step = 0; step < 4000; ++step) {
    const uint32_t from = random(buffers), to = (from + 1 + random(buffers - 1)) % buffers, kind = random(100);
    if (kind < 60) {
      run(add_buffer, {device[to].get(), device[from].get()});
      for (uint32_t i = 0; i < size; ++i) host[to][i] += host[from][i];
    } else if (kind < 75) {
      run(add_constant, {device[to].get()}, {kind});
      for (auto& value : host[to]) value += kind;
    } else if (kind < 94) {
      const uint32_t words = 1 + random(16), source = random(size - words), target = random(size - words);
      runtime().stream.copy(device[from]->buffer(), source * 4, device[to]->buffer(), target * 4, words * 4);
      std::copy_n(host[from].begin() + source, words, host[to].begin() + target);
    } else if (kind < 98) {
      const uint32_t words = 1 + random(16), target = random(size - words);
      const std::vector<uint32_t> values(words, state);
      runtime().stream.write(device[to]->buffer(), target * 4, values.data(), words * 4);
      std::copy(values.begin(), values.end(), host[to].begin() + target);
    } else {
      REQUIRE(device[from]->get() == host[from]);
    }
  }
  for (uint32_t i = 0; i < buffers; ++i) CHECK(device[i]->get() == host[i]);
}

TEST_CASE("stream: dispatching does not wait") {
  auto& stream = runtime().stream;
  const uint32_t rounds = rounds_for(200);
  const Words out(std::vector<uint32_t>(64, 0)), copied(64);
  run(add_constant, {&out}, {0});
  stream.synchronize();
  CHECK(stream.is_idle());
  const double begin = now_ms();
  run(spin, {&out}, {rounds});
  stream.flush();
  Event spun(false);
  stream.record(spun);
  for (int i = 0; i < 50; ++i) run(add_constant, {&out}, {0});
  stream.copy(out.buffer(), 0, copied.buffer(), 0, 256);
  // On llvmpipe a submit through wgpu-native waits for the one before it.
  if (!runtime().device.api.is_wgpu_native()) stream.flush();
  const double recorded = now_ms() - begin;
  CHECK_FALSE(stream.is_complete(spun));
  stream.synchronize();
  CHECK(stream.is_complete(spun));
  CHECK(stream.is_idle());
  const double finished = now_ms() - begin;
  INFO("recorded after ", recorded, " ms, finished after ", finished, " ms");
  CHECK(finished > 100);
  CHECK(recorded < finished / 2);
}

TEST_CASE("stream: threads dispatch and read side by side") {
  constexpr uint32_t threads = 4, rounds = 100;
  std::atomic<uint32_t> wrong{0};
  std::vector<std::thread> workers;
  const Words shared(std::vector<uint32_t>(64, 0));
  for (uint32_t thread = 0; thread < threads; ++thread) {
    workers.emplace_back([&, thread] {
      try {
        const Words total(std::vector<uint32_t>(64, thread));
        uint32_t expected = thread;
        for (uint32_t round = 0; round < rounds; ++round) {
          const Words operand(std::vector<uint32_t>(64, round * threads + thread));
          run(add_buffer, {&total, &operand});
          for (uint32_t i = 0; i < 10; ++i) run(add_constant, {&total}, {i});
          run(add_constant, {&shared}, {1});
          expected += round * threads + thread + 45;
          if (round % 10 == 0 && total.get() != std::vector<uint32_t>(64, expected)) ++wrong;
          if (round % 25 == 0) runtime().pool.trim();
        }
        if (total.get() != std::vector<uint32_t>(64, expected)) ++wrong;
      } catch (const std::exception&) {
        ++wrong;
      }
    });
  }
  for (auto& worker : workers) worker.join();
  CHECK(wrong == 0);
  CHECK(shared.get() == std::vector<uint32_t>(64, threads * rounds));
}

TEST_CASE("stream: large uploads and readbacks cross their chunks") {
  auto& [device, kernels, stream, pool] = runtime();
  const uint64_t size = (uint64_t{98} << 20) + 4099;  // of three whole chunks, two are under way at once
  const auto sent = pattern(size);
  Buffer* buffer = pool.allocate(size + 64);
  stream.write(*buffer, 4, sent.data(), size);
  std::vector<uint8_t> received(size + 8, 0xEE);
  stream.read(*buffer, 4, received.data() + 4, size);
  CHECK(std::memcmp(received.data() + 4, sent.data(), size) == 0);
  for (const uint64_t guard : {uint64_t{0}, uint64_t{3}, size + 4, size + 7}) CHECK(received[guard] == 0xEE);
  std::vector<uint8_t> slice(100);
  const uint64_t offset = (uint64_t{32} << 20) - 52;
  stream.read(*buffer, 4 + offset, slice.data(), slice.size());
  CHECK(std::memcmp(slice.data(), sent.data() + offset, slice.size()) == 0);
  pool.release(buffer);
}

TEST_CASE("stream: what is staged and what is recorded does not pile up") {
  auto& stream = runtime().stream;
  const Words target(1 << 18);
  const std::vector<uint32_t> values(1 << 18, 1);
  const auto churn = [&] {
    for (int i = 0; i < 300; ++i) stream.write(target.buffer(), 0, values.data(), 1 << 20);
    for (int i = 0; i < 50'000; ++i) stream.write(target.buffer(), 0, values.data(), 4);
    for (int i = 0; i < 100'000; ++i) {
      Event event(false);
      stream.record(event);
    }
    stream.synchronize();
  };
  churn();
  const uint64_t before = resident_bytes();
  churn();
#ifndef __SANITIZE_ADDRESS__  // which keeps what was freed, to see it used
  CHECK(resident_bytes() < before + (uint64_t{20} << 20));
#else
  CHECK(before > 0);
#endif
}

TEST_CASE("stream: tails of one to three bytes") {
  auto& stream = runtime().stream;
  for (uint64_t size = 0; size <= 9; ++size) {
    const Words target(std::vector<uint32_t>(4, 0x55555555));
    const auto sent = pattern(size);
    stream.write(target.buffer(), 4, sent.data(), size);
    std::vector<uint8_t> expected(16, 0x55);
    std::fill_n(expected.begin() + 4, (size + 3) / 4 * 4, 0);  // an upload fills its last word
    std::copy(sent.begin(), sent.end(), expected.begin() + 4);
    const auto words = target.get();
    CHECK(std::memcmp(words.data(), expected.data(), 16) == 0);
    std::vector<uint8_t> received(16, 0xEE);
    stream.read(target.buffer(), 4, received.data(), size);
    CHECK(std::equal(sent.begin(), sent.end(), received.begin()));
    for (uint64_t i = size; i < received.size(); ++i) CHECK(received[i] == 0xEE);  // a readback stays inside
  }
}

TEST_CASE("stream: counters") {
  auto& stream = runtime().stream;
  Words a(std::vector<uint32_t>(64, 1)), b(64);
  const auto before = stream.stats();
  a.set({5});
  stream.copy(a.buffer(), 0, b.buffer(), 0, 256);
  run(add_constant, {&b}, {1});
  CHECK(b.get()[0] == 6);
  const auto after = stream.stats();
  CHECK(after.uploads - before.uploads == 1);
  CHECK(after.copies - before.copies == 1);
  CHECK(after.dispatches - before.dispatches == 1);
  CHECK(after.readbacks - before.readbacks == 1);
  CHECK(after.submits - before.submits == 1);
}

// A program whose first binding is declared for reading alone.
Launch launch_that_reads_first(const Program& program, const std::vector<Binding>& bindings) {
  Launch launch = make_launch(program, bindings);
  launch.print = [](const Launch& self) {
    KernelSource source = source_of(*static_cast<const Program*>(self.context));
    const std::string written = "read_write> m0";
    source.wgsl.replace(source.wgsl.find(written), written.size(), "read> m0");
    return source;
  };
  return launch;
}

TEST_CASE("stream: bindings follow what a text declares") {
  const Program add{"add", 2, "m1[id.x] += m0[id.x];"};
  const Words in(std::vector<uint32_t>(64, 3)), out(std::vector<uint32_t>(64, 4));
  const Launch launch = launch_that_reads_first(add, {in.binding(), out.binding()});
  CHECK(declared_read_only(launch.print(launch).wgsl) == 0b01);
  runtime().stream.dispatch(launch);
  CHECK(out.get() == std::vector<uint32_t>(64, 7));
}

TEST_CASE("stream: one part of a buffer may be read and another written") {
  const Program copy{"copy", 2, "m1[id.x] = m0[id.x];"};
  std::vector<uint32_t> values = std::vector<uint32_t>(128, 1);
  std::fill(values.begin() + 64, values.end(), 2);
  const Words words(values);
  Launch launch = launch_that_reads_first(copy, {{&words.buffer(), 0, 256}, {&words.buffer(), 1, 256}});
  launch.windowed = true;
  runtime().stream.dispatch(launch);
  CHECK(words.get() == std::vector<uint32_t>(128, 1));

  const Words in(std::vector<uint32_t>(64, 5)), out(std::vector<uint32_t>(64, 0));  // the same kernel on two buffers
  runtime().stream.dispatch(launch_that_reads_first(copy, {in.binding(), out.binding()}));
  CHECK(out.get() == std::vector<uint32_t>(64, 5));
}

TEST_CASE("stream: a dry run records nothing") {
  auto& stream = runtime().stream;
  const Words out(std::vector<uint32_t>(64, 3));
  run(add_constant, {&out}, {1});
  stream.set_dry(true);
  const auto before = stream.stats();
  for (int i = 0; i < 5000; ++i) run(add_constant, {&out}, {1});
  const auto after = stream.stats();
  stream.set_dry(false);
  CHECK(after.dispatches == before.dispatches);
  CHECK(after.submits == before.submits);
  run(add_constant, {&out}, {1});
  CHECK(out.get() == std::vector<uint32_t>(64, 5));
}

}  // namespace torch_webgpu
