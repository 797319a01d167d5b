// Size classes, reuse, statistics and running out.
#include <algorithm>
#include <set>

#include "support.h"

namespace torch_webgpu {
using namespace test;

namespace {

void check_rounding(uint64_t size) {
  const uint64_t rounded = BufferPool::rounded_size(size);
  INFO("size ", size, " rounded ", rounded);
  REQUIRE(rounded >= size);
  REQUIRE(rounded % 64 == 0);
  REQUIRE(rounded >= 256);
  if (size > 1024) REQUIRE(rounded * 4 <= size * 5);
  REQUIRE(BufferPool::rounded_size(rounded) == rounded);
}

// A driver that says "out of memory" to the next `refusals` large buffers.
int refusals = 0;
bool refused = false;
Api driver;
WGPUUncapturedErrorCallbackInfo errors;

// Dawn tells it to an error scope, wgpu-native to the device.
void refuse_buffers(Api& api) {
  driver = api;
  api.AdapterRequestDevice = [](WGPUAdapter adapter, const WGPUDeviceDescriptor* descriptor,
                                WGPURequestDeviceCallbackInfo callback) {
    errors = descriptor->uncapturedErrorCallbackInfo;
    return driver.AdapterRequestDevice(adapter, descriptor, callback);
  };
  api.DeviceCreateBuffer = [](WGPUDevice device, const WGPUBufferDescriptor* descriptor) {
    refused = descriptor->size >= 1 << 20 && refusals > 0;
    if (refused) --refusals;
    if (refused && driver.is_wgpu_native()) {
      errors.callback(&device, WGPUErrorType_OutOfMemory, to_view("no memory"), errors.userdata1, errors.userdata2);
    }
    return driver.DeviceCreateBuffer(device, descriptor);
  };
  api.DevicePopErrorScope = [](WGPUDevice device, WGPUPopErrorScopeCallbackInfo callback) {
    static WGPUPopErrorScopeCallbackInfo original;
    original = callback;
    if (refused) {
      callback.callback = [](WGPUPopErrorScopeStatus status, WGPUErrorType, WGPUStringView, void*, void*) {
        original.callback(status, WGPUErrorType_OutOfMemory, to_view("no memory"), original.userdata1,
                          original.userdata2);
      };
    }
    refused = false;
    return driver.DevicePopErrorScope(device, callback);
  };
}

}  // namespace

TEST_CASE("pool: sizes are rounded up by a quarter at most") {
  for (uint64_t size = 0; size < 70'000; ++size) check_rounding(size);
  for (uint64_t power = 16; power < 41; ++power) {
    for (int64_t around = -3; around <= 3; ++around) {
      check_rounding((uint64_t{1} << power) + around);
      check_rounding((uint64_t{5} << power) / 4 + around);
    }
  }
}

TEST_CASE("pool: rounding never shrinks as sizes grow") {
  uint64_t before = 0;
  std::set<uint64_t> classes;
  for (uint64_t size = 1; size < 1 << 20; size += 61) {
    const uint64_t rounded = BufferPool::rounded_size(size);
    REQUIRE(rounded >= before);
    before = rounded;
    classes.insert(rounded);
  }
  CHECK(classes.size() <= 12 * 4 + 1);  // four per doubling from 256 bytes to 1 MiB
}

TEST_CASE("pool: a released buffer is the next one of its class") {
  auto& pool = runtime().pool;
  Buffer* first = pool.allocate(5000);
  CHECK(first->size_bytes == BufferPool::rounded_size(5000));
  const auto created = pool.stats().buffers_created;
  const uint32_t id = first->id;
  pool.release(first);
  Buffer* again = pool.allocate(first->size_bytes - 4);
  CHECK(again == first);
  CHECK(again->id == id);
  CHECK(pool.stats().buffers_created == created);
  Buffer* other = pool.allocate(5000);
  CHECK(other != again);
  CHECK(other->id != again->id);
  pool.release(again);
  pool.release(other);
}

TEST_CASE("pool: reuse keeps the order of the stream") {
  const Words result(std::vector<uint32_t>(64, 0));
  const Buffer* reused = nullptr;
  uint32_t expected = 0;
  for (uint32_t i = 1; i <= 300; ++i) {
    const Words operand(std::vector<uint32_t>(64, i));
    if (reused) CHECK(&operand.buffer() == reused);
    reused = &operand.buffer();
    run(add_buffer, {&result, &operand});  // only recorded when the operand goes back to the pool
    expected += i;
  }
  CHECK(result.get() == std::vector<uint32_t>(64, expected));
}

TEST_CASE("pool: statistics follow allocations") {
  auto& pool = runtime().pool;
  pool.trim();
  pool.reset_peaks();
  pool.reset_totals();
  const auto before = pool.stats();
  CHECK(before.allocations == 0);
  CHECK(before.allocated_peak == before.allocated_bytes);
  Buffer* a = pool.allocate(4096);
  Buffer* b = pool.allocate(1 << 20);
  auto stats = pool.stats();
  const uint64_t both = 4096 + (1 << 20);
  CHECK(stats.allocated_bytes == before.allocated_bytes + both);
  CHECK(stats.reserved_bytes == before.reserved_bytes + both);
  CHECK(stats.allocations == 2);
  CHECK(stats.buffers_created == before.buffers_created + 2);
  pool.release(a);
  pool.release(b);
  stats = pool.stats();
  CHECK(stats.allocated_bytes == before.allocated_bytes);
  CHECK(stats.allocated_peak == before.allocated_bytes + both);
  CHECK(stats.allocated_total == both);
  CHECK(stats.freed_total == both);
  CHECK(stats.frees == 2);
  CHECK(stats.reserved_bytes == before.reserved_bytes + both);
  pool.reset_peaks();
  CHECK(pool.stats().allocated_peak == before.allocated_bytes);
}

TEST_CASE("pool: trim gives free memory back and the rest works on") {
  auto& [device, kernels, stream, pool] = runtime();
  const Words kept(std::vector<uint32_t>(64, 1));
  std::set<uint32_t> ids;
  for (int round = 0; round < 3; ++round) {
    {
      const Words a(std::vector<uint32_t>(5'000, 7)), b(std::vector<uint32_t>(5'000, 9));
      CHECK(ids.insert(a.buffer().id).second);  // never an id that a dead buffer had
      CHECK(ids.insert(b.buffer().id).second);
      run(add_buffer, {&a, &b}, {}, 78);
      run(add_buffer, {&kept, &a});
    }
    pool.trim();  // while the dispatches above are only recorded
    const auto stats = pool.stats();
    CHECK(stats.reserved_bytes == stats.allocated_bytes);
  }
  CHECK(kept.get() == std::vector<uint32_t>(64, 1 + 3 * 16));
  pool.trim();
  pool.trim();  // with nothing to give
}

TEST_CASE("pool: addresses of live buffers do not overlap") {
  auto& pool = runtime().pool;
  std::vector<Buffer*> live;
  for (uint64_t i = 0; i < 300; ++i) {
    live.push_back(pool.allocate(1 + i * 97 % 9000));
    if (i % 3 == 0) {
      pool.release(live.back());
      live.pop_back();
    }
    if (i % 50 == 0) pool.trim();
  }
  const Buffer* below = nullptr;
  std::sort(live.begin(), live.end(), [](const Buffer* a, const Buffer* b) { return a->address < b->address; });
  for (Buffer* buffer : live) {
    if (below) CHECK(below->address + below->size_bytes <= buffer->address);
    CHECK(reinterpret_cast<uintptr_t>(buffer->address) % 64 == 0);
    below = buffer;
  }
  for (Buffer* buffer : live) pool.release(buffer);
}

TEST_CASE("pool: more than one buffer can hold is refused by name") {
  auto& pool = runtime().pool;
  const uint64_t limit = runtime().device.limits.maxBufferSize;
  pool.reset_totals();
  const auto before = pool.stats();
  const auto message = message_of<OutOfMemoryError>([&] { pool.allocate(limit + 1); });
  CHECK(contains(message, std::to_string(limit + 1)));
  CHECK(contains(message, "at most " + std::to_string(limit)));
  CHECK(contains(message, runtime().device.info.name));
  CHECK_THROWS_AS(pool.allocate(uint64_t{1} << 50), OutOfMemoryError);
  const auto stats = pool.stats();
  CHECK(stats.out_of_memory == 2);
  CHECK(stats.retries == 0);  // no emptying of the pool makes it fit
  CHECK(stats.allocated_bytes == before.allocated_bytes);
  const Words after(std::vector<uint32_t>(64, 5));
  run(add_constant, {&after}, {1});
  CHECK(after.get() == std::vector<uint32_t>(64, 6));
}

TEST_CASE("pool: the largest buffer is as large as the adapter allows") {
  auto& pool = runtime().pool;
  const uint64_t largest = runtime().device.limits.maxBufferSize & ~uint64_t{63};
  try {
    Buffer* buffer = pool.allocate(largest);
    CHECK(buffer->size_bytes >= largest);
    CHECK(buffer->size_bytes <= runtime().device.limits.maxBufferSize);
    pool.release(buffer);
    pool.trim();
  } catch (const OutOfMemoryError& error) {
    MESSAGE("this machine has no room for it: ", error.what());
  }
}

TEST_CASE("pool: when the driver has no more memory") {
  Adapter adapter = Adapter::find(options_from_environment());
  refuse_buffers(adapter.api);
  auto& [device, kernels, stream, pool] = *new Runtime(adapter);
  const uint64_t size = 3 << 20;
  Buffer* other = pool.allocate(1 << 16);
  pool.release(other);
  refusals = 1;
  Buffer* second_try = pool.allocate(size);
  CHECK(pool.stats().retries == 1);
  CHECK(pool.stats().out_of_memory == 0);
  CHECK(pool.stats().reserved_bytes == size);  // what was free went back to the driver first
  refusals = 2;
  const auto message = message_of<OutOfMemoryError>([&] { pool.allocate(size); });
  CHECK(contains(message, "out of memory"));
  CHECK(contains(message, std::to_string(size)));
  CHECK(pool.stats().out_of_memory == 1);
  CHECK(pool.stats().allocated_bytes == size);
  pool.release(second_try);
  CHECK(pool.allocate(size) == second_try);
  pool.release(second_try);
  stream.synchronize();  // nothing is left to report
  CHECK(refusals == 0);
}

TEST_CASE("pool: mixed sizes come and go without growth") {
  auto& pool = runtime().pool;
  pool.trim();
  const auto before = pool.stats();
  const auto churn = [&] {
    uint64_t state = 1;
    std::vector<Buffer*> live;
    for (int i = 0; i < 10'000; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      live.push_back(pool.allocate((state >> 40) % 100'000));
      if (live.size() > 20) {
        std::swap(live[(state >> 20) % live.size()], live.back());
        pool.release(live.back());
        live.pop_back();
      }
    }
    for (Buffer* buffer : live) pool.release(buffer);
  };
  churn();
  const auto first = pool.stats();
  churn();
  const auto second = pool.stats();
  CHECK(second.allocated_bytes == before.allocated_bytes);
  CHECK(second.buffers_created == first.buffers_created);
  CHECK(second.reserved_bytes == first.reserved_bytes);
}

}  // namespace torch_webgpu
