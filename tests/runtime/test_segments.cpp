// Segments: buffers that are gathered in one WGPUBuffer keep their addresses, contents and order, whatever binds them.
#include <algorithm>

#include "runtime/tape.h"
#include "support.h"

namespace torch_webgpu {
using namespace test;

namespace {

constexpr uint64_t kMost = uint64_t{64} << 20;

std::vector<uint32_t> filled(uint32_t value, size_t count = 64) { return std::vector<uint32_t>(count, value); }

Buffer& writable(const Words& words) { return const_cast<Buffer&>(words.buffer()); }

bool gather(const Words& words, bool keeps_contents = true) {
  return runtime().pool.gather(writable(words), kMost, keeps_contents);
}

const Program add_read{"add_read", 2, "  m0[id.x] += m1[id.x];"};

// As printers declare it: what is not written is declared to be read.
Launch reading_launch(const Words& out, const Words& in) {
  Launch launch = make_launch(add_read, {out.binding(), in.binding()});
  launch.print = [](const Launch&) {
    KernelSource source = source_of(add_read);
    const std::string access = "read_write> m1";
    source.wgsl.replace(source.wgsl.find(access), access.size(), "read> m1");
    return source;
  };
  return launch;
}

}  // namespace

TEST_CASE("segments: a gathered buffer keeps its address and contents") {
  auto& pool = runtime().pool;
  const Words a(filled(3)), b(filled(4)), large(uint64_t{2} << 20);
  const char* address = a.buffer().address;
  const auto before = pool.stats();
  REQUIRE(gather(a));
  REQUIRE(gather(b));
  CHECK(a.buffer().address == address);
  CHECK(a.buffer().segment != nullptr);
  CHECK(a.buffer().handle == b.buffer().handle);
  CHECK(a.buffer().offset != b.buffer().offset);
  CHECK(a.buffer().offset % 256 == 0);
  CHECK(pool.find(address + 8) == &a.buffer());
  CHECK(a.get() == filled(3));
  CHECK(b.get() == filled(4));
  CHECK(pool.stats().allocated_bytes == before.allocated_bytes);
  CHECK(pool.stats().live == before.live);
  const uint32_t id = a.buffer().id;
  CHECK(gather(a));  // is there already
  CHECK(a.buffer().id == id);
  CHECK_FALSE(gather(large));
}

TEST_CASE("segments: launches write and read gathered buffers") {
  auto& stream = runtime().stream;
  const Words a(filled(1)), b(filled(20)), alone(filled(300));
  run(add_buffer, {&a, &b});  // recorded before they move
  REQUIRE(gather(a));
  REQUIRE(gather(b));
  run(add_buffer, {&a, &b});  // declares both for writing
  CHECK(a.get() == filled(41));
  stream.dispatch(reading_launch(a, b));  // reads what shares a WGPUBuffer with what it writes
  stream.dispatch(reading_launch(b, a));
  stream.dispatch(reading_launch(a, alone));
  stream.dispatch(reading_launch(alone, b));
  CHECK(a.get() == filled(361));
  CHECK(b.get() == filled(81));
  CHECK(alone.get() == filled(381));
}

TEST_CASE("segments: copies and writes between gathered buffers") {
  auto& stream = runtime().stream;
  const Words a(filled(1)), b(filled(2));
  REQUIRE(gather(a));
  REQUIRE(gather(b));
  stream.copy(a.buffer(), 0, b.buffer(), 128, 128);
  auto expected = filled(2);
  std::fill_n(expected.begin() + 32, 32, 1);
  CHECK(b.get() == expected);
  const uint32_t word = 77;
  stream.write(a.buffer(), 4, &word, sizeof(word));
  expected = filled(1);
  expected[1] = 77;
  CHECK(a.get() == expected);
}

TEST_CASE("segments: a kernel sees the whole segment") {
  const Words a(filled(1)), b(filled(2));
  REQUIRE(gather(a));
  REQUIRE(gather(b));
  static const Program everywhere{"everywhere", 1, "  m0[p[0].x + id.x] = 5u;\n  m0[p[0].y + id.x] = 6u;"};
  const Buffer& whole = a.buffer().segment->whole;
  const auto word = [](const Words& words) { return static_cast<uint32_t>(words.buffer().offset / 4); };
  runtime().stream.dispatch(make_launch(everywhere, {{&whole, 0, 0}}, {word(a), word(b)}));
  CHECK(a.get() == filled(5));
  CHECK(b.get() == filled(6));
}

TEST_CASE("segments: a place is used again, and kept from what is not gathered") {
  auto& pool = runtime().pool;
  uint64_t offset = 0;
  const void* handle = nullptr;
  {
    const Words a(filled(1));
    REQUIRE(gather(a));
    offset = a.buffer().offset;
    handle = a.buffer().handle;
  }
  const Words other(filled(2));
  CHECK(other.buffer().segment == nullptr);
  const auto created = pool.stats().buffers_created;
  REQUIRE(gather(other, /*keeps_contents=*/false));
  CHECK(other.buffer().offset == offset);
  CHECK(other.buffer().handle == handle);
  CHECK(pool.stats().buffers_created == created);
}

TEST_CASE("segments: memory goes back to the driver when nothing in a segment is used") {
  auto& pool = runtime().pool;
  pool.trim();
  const auto before = pool.stats();
  {
    const Words kept(filled(1));
    {
      std::vector<std::unique_ptr<Words>> many;
      for (uint32_t i = 0; i < 300; ++i) {
        many.push_back(std::make_unique<Words>(filled(i, 5000)));
        REQUIRE(gather(*many.back()));
      }
      for (uint32_t i = 0; i < 300; ++i) REQUIRE(many[i]->get() == filled(i, 5000));
    }
    REQUIRE(gather(kept));
    pool.trim();
    const auto stats = pool.stats();
    CHECK(stats.allocated_bytes == before.allocated_bytes + 256);
    CHECK(stats.reserved_bytes > before.reserved_bytes);
    CHECK(kept.get() == filled(1));
  }
  pool.trim();
  CHECK(pool.stats().reserved_bytes == before.reserved_bytes);
  CHECK(pool.stats().live == before.live);
}

TEST_CASE("segments: buffers stay where they are while a tape is recorded, and move under it afterwards") {
  auto& stream = runtime().stream;
  const Words in(filled(1)), out(filled(10));
  Tape tape({&in.buffer(), &out.buffer()});
  REQUIRE(stream.record_to(tape));
  stream.dispatch(reading_launch(out, in));
  CHECK_FALSE(gather(in));
  stream.copy(out.buffer(), 0, in.buffer(), 0, 256);
  stream.stop_recording();
  REQUIRE(tape.failure() == "");
  CHECK(in.get() == filled(11));
  REQUIRE(gather(in));
  REQUIRE(gather(out));
  const Buffer* slots[] = {&in.buffer(), &out.buffer()};
  stream.replay(tape, slots);
  CHECK(in.get() == filled(22));
  CHECK(out.get() == filled(22));
}

}  // namespace torch_webgpu
