// Bind groups by exact key: hits, windows, eviction.
#include <memory>
#include <set>

#include "support.h"

namespace torch_webgpu {
using namespace test;

TEST_CASE("bind groups: one per combination of buffers and windows") {
  auto& [device, kernels, stream, pool] = runtime();
  BindGroupCache cache(device, kernels);
  const Words a(1024), b(1024);
  const std::vector<std::vector<Binding>> combinations = {{a.binding()},
                                                          {b.binding()},
                                                          {a.binding(1)},
                                                          {a.binding(2)},
                                                          {a.binding(), b.binding()},
                                                          {b.binding(), a.binding()},
                                                          {a.binding(1), b.binding()},
                                                          {a.binding(), b.binding(1)}};
  std::set<WGPUBindGroup> groups;
  for (const auto& combination : combinations)
    groups.insert(cache.get(combination.data(), {static_cast<uint32_t>(combination.size())}));
  CHECK(groups.size() == combinations.size());
  CHECK(cache.misses() == combinations.size());
  for (const auto& combination : combinations)
    CHECK(groups.count(cache.get(combination.data(), {static_cast<uint32_t>(combination.size())})));
  CHECK(cache.hits() == combinations.size());
  CHECK(cache.misses() == combinations.size());
  cache.clear();
  CHECK(cache.get(combinations[0].data(), {1}) != nullptr);
  CHECK(cache.misses() == combinations.size() + 1);
}

TEST_CASE("bind groups: a steady loop makes none and no buffers either") {
  auto& [device, kernels, stream, pool] = runtime();
  const Words total(std::vector<uint32_t>(64, 0)), one(std::vector<uint32_t>(64, 1));
  const auto step = [&] {  // temporaries that come and go, as in a training step
    const Words x(64), y(64);
    stream.copy(one.buffer(), 0, x.buffer(), 0, 256);
    stream.copy(one.buffer(), 0, y.buffer(), 0, 256);
    run(add_buffer, {&x, &y});
    run(add_buffer, {&total, &x});
  };
  for (int i = 0; i < 10; ++i) step();
  stream.synchronize();  // the kernels are compiled
  const auto before = stream.stats();
  const auto created = pool.stats().buffers_created;
  for (int i = 0; i < 1000; ++i) step();
  const auto after = stream.stats();
  const double hits = static_cast<double>(after.bind_group_hits - before.bind_group_hits);
  CHECK(after.dispatches - before.dispatches == 2000);
  CHECK(hits / 2000 >= 0.95);
  CHECK(after.bind_group_hits + after.bind_group_misses - before.bind_group_hits - before.bind_group_misses == 2000);
  CHECK(after.kernels_compiled == before.kernels_compiled);
  CHECK(pool.stats().buffers_created == created);
  CHECK(total.get() == std::vector<uint32_t>(64, 2020));
}

TEST_CASE("bind groups: a window starts where it says") {
  std::vector<uint32_t> values(1024, 0);
  const Words target(values);
  const auto words_per_window = kWindowBytes / 4;
  for (uint32_t window = 0; window < 16; ++window) {
    runtime().stream.dispatch(make_launch(add_constant, {target.binding(window)}, {window + 1}));
    for (uint32_t i = 0; i < 64; ++i) values[window * words_per_window + i] += window + 1;
  }
  CHECK(target.get() == values);
}

TEST_CASE("bind groups: a buffer larger than one binding is reached through windows") {
  const auto& limits = runtime().device.limits;
  const uint64_t binding = limits.maxStorageBufferBindingSize, size = binding + (1 << 20);
  if (limits.maxBufferSize < BufferPool::rounded_size(size)) {
    MESSAGE("one binding holds the largest buffer here");
    return;
  }
  auto& [device, kernels, stream, pool] = runtime();
  const Words large(size / 4);
  const Program mark{"mark", 1, "if (id.x == 0u) { m0[p[0].x] = p[0].y; m0[arrayLength(&m0) - 1u] = p[0].z; }"};
  stream.dispatch(make_launch(mark, {large.binding(0)}, {0, 11, 12}));
  // The last MiB is behind the first binding's end.
  const auto window = static_cast<uint32_t>((size - (1 << 20)) / kWindowBytes);
  const Words last(std::vector<uint32_t>(64, 0));
  stream.dispatch(make_launch(mark, {large.binding(window)}, {5, 21, 22}));
  const auto word_at = [&](uint64_t offset) {
    uint32_t word = 0;
    stream.read(large.buffer(), offset, &word, 4);
    return word;
  };
  CHECK(word_at(0) == 11);
  CHECK(word_at((binding & ~uint64_t{15}) - 4) == 12);
  CHECK(word_at(window * kWindowBytes + 20) == 21);
  CHECK(word_at(large.buffer().size_bytes - 4) == 22);
}

TEST_CASE("bind groups: more combinations than the cache holds") {
  constexpr uint32_t count = 160;  // 25,440 pairs; the cache holds 16,384
  auto& stream = runtime().stream;
  const Program add_last{"add_last", 2, "if (id.x == 0u) { m0[0] += m1[1]; }", "1"};
  std::vector<std::unique_ptr<Words>> buffers;
  for (uint32_t i = 0; i < count; ++i) buffers.push_back(std::make_unique<Words>(std::vector<uint32_t>{0, i * i + 1}));
  const auto before = stream.stats();
  for (const auto& a : buffers) {
    for (const auto& b : buffers) {
      if (a != b) run(add_last, {a.get(), b.get()});
    }
  }
  // The first pairs have been evicted by now.
  for (uint32_t i = 1; i < count; ++i) run(add_last, {buffers[0].get(), buffers[i].get()});
  const auto misses = stream.stats().bind_group_misses - before.bind_group_misses;
  CHECK(misses > count * (count - 1));
  uint32_t total = 0;
  for (uint32_t i = 0; i < count; ++i) total += i * i + 1;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t others = total - (i * i + 1);
    CHECK(buffers[i]->get()[0] == (i == 0 ? 2 * others : others));
  }
}

}  // namespace torch_webgpu
