// Launches of a tape over segments: what is worth gathering, what shares a launch, and that a replay gives the same.
#include <memory>
#include <numeric>

#include "runtime/horizontal.h"
#include "support.h"

namespace torch_webgpu {
using namespace test;

namespace {

constexpr uint64_t kMost = uint64_t{64} << 20;

std::vector<uint32_t> filled(uint32_t value) { return std::vector<uint32_t>(64, value); }

uint32_t most_bindings() { return bindings_of(runtime().device); }

// Buffers of 64 words each, which hold their numbers.
struct Many {
  explicit Many(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      words.push_back(std::make_unique<Words>(filled(i)));
      buffers.push_back(&words.back()->buffer());
    }
  }
  const Words& operator[](size_t i) const { return *words[i]; }
  std::vector<std::unique_ptr<Words>> words;
  std::vector<const Buffer*> buffers;
};

template <class Work>
Tape recorded(const std::vector<const Buffer*>& given, const Work& work) {
  Tape tape(given);
  tape.prepare_to_fuse();
  REQUIRE(runtime().stream.record_to(tape));
  work();
  runtime().stream.stop_recording();
  REQUIRE(tape.failure() == "");
  return tape;
}

std::vector<uint32_t> worth_gathering(const Tape& tape, const std::vector<bool>& kept) {
  return worth_gathering(tape, kept, runtime().device);
}

// Gathers what is worth it, fuses, and replays.
size_t replay(Tape& tape, const std::vector<bool>& kept, std::vector<const Buffer*> buffers) {
  const auto slots = worth_gathering(tape, kept);
  std::vector<const Buffer*> places;
  for (const uint32_t slot : slots) {
    REQUIRE(runtime().pool.gather(const_cast<Buffer&>(*buffers[slot]), kMost, true));
    places.push_back(buffers[slot]);
  }
  const Gathered gathered = places_of(tape, slots, places);
  fuse_horizontally(tape, runtime().kernels, runtime().device, gathered);
  for (size_t i = buffers.size(); i < tape.slots().size(); ++i) buffers.push_back(tape.slots()[i].buffer);
  runtime().stream.replay(tape, buffers.data());
  return tape.launch_count();
}

std::vector<uint32_t> numbers_to(uint32_t end) {
  std::vector<uint32_t> numbers(end);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

// The words of an element of each storage are the digits of the program's name.
KernelSource source_with_types(const Launch& launch) {
  const auto& program = *static_cast<const Program*>(launch.context);
  KernelSource source = source_of(program);
  for (uint32_t i = 0; i < program.binding_count; ++i) {
    if (program.label[i] == '1') continue;
    const std::string name = "m" + std::to_string(i) + ": array<";
    source.wgsl.replace(
        source.wgsl.find(name + "u32>"), name.size() + 4,
        name + (program.label[i] == 'a' ? "atomic<u32>>" : "vec" + program.label.substr(i, 1) + "<u32>>"));
  }
  return source;
}

void run_typed(const Program& program, std::initializer_list<const Words*> operands) {
  std::vector<Binding> bindings;
  for (const auto* words : operands) bindings.push_back(words->binding());
  Launch launch = make_launch(program, bindings);
  launch.print = &source_with_types;
  runtime().stream.dispatch(launch);
}

}  // namespace

TEST_CASE("segment launch: parts of one kernel share a launch and a text") {
  const Many a(40);
  Tape tape = recorded(a.buffers, [&] {
    for (uint32_t i = 0; i < 40; ++i) run(add_constant, {&a[i]}, {100 * i});
  });
  CHECK(replay(tape, std::vector<bool>(40, true), a.buffers) == 1);
  for (uint32_t i = 0; i < 40; ++i) CHECK(a[i].get() == filled(i + 200 * i));
}

TEST_CASE("segment launch: what is not kept is bound one by one") {
  const Many all(60);
  std::vector<bool> kept(30, true);
  kept.resize(60);
  Tape tape = recorded(all.buffers, [&] {
    for (uint32_t i = 0; i < 30; ++i) run(add_buffer, {&all[i], &all[30 + i]});
  });
  CHECK(worth_gathering(tape, kept) == numbers_to(30));
  const uint32_t each = most_bindings() - 1;
  CHECK(replay(tape, kept, all.buffers) == (30 + each - 1) / each);
  for (uint32_t i = 0; i < 30; ++i) CHECK(all[i].get() == filled(i + 2 * (30 + i)));
}

TEST_CASE("segment launch: what nobody keeps may lie in the same segment") {
  const Many all(40);
  std::vector<bool> kept(20, true);
  kept.resize(40);
  for (uint32_t i = 20; i < 40; ++i) REQUIRE(runtime().pool.gather(const_cast<Buffer&>(all[i].buffer()), kMost, true));
  Tape tape = recorded(all.buffers, [&] {
    for (uint32_t i = 0; i < 20; ++i) run(add_buffer, {&all[i], &all[20 + i]});
  });
  const auto expected = [](uint32_t i, uint32_t times) { return filled(i + times * (20 + i)); };
  for (uint32_t i = 0; i < 20; ++i) CHECK(all[i].get() == expected(i, 1));
  replay(tape, kept, all.buffers);
  CHECK(all[3].buffer().segment == all[23].buffer().segment);
  for (uint32_t i = 0; i < 20; ++i) CHECK(all[i].get() == expected(i, 2));
}

TEST_CASE("segment launch: parts of several kernels and sizes") {
  const Program add_wide{"add_wide", 1, "m0[id.x] += p[1].x + p[0].x;"};
  const Many a(40);
  const Words large(std::vector<uint32_t>(1000, 5));
  std::vector<const Buffer*> given = a.buffers;
  given.push_back(&large.buffer());
  Tape tape = recorded(given, [&] {
    for (uint32_t i = 0; i < 40; ++i) {
      if (i % 3 == 0) run(add_wide, {&a[i]}, {1, 0, 0, 0, i});
      if (i % 3 != 0) run(add_constant, {&a[i]}, {i});
    }
    run(add_constant, {&large}, {7}, 16);
  });
  CHECK(replay(tape, std::vector<bool>(41, true), given) == 1);
  for (uint32_t i = 0; i < 40; ++i) CHECK(a[i].get() == filled(i % 3 == 0 ? 3 * i + 2 : 3 * i));
  CHECK(large.get() == std::vector<uint32_t>(1000, 19));
}

TEST_CASE("segment launch: parts read what earlier ones wrote, in the same segment") {
  const Many all(80);
  Tape tape = recorded(all.buffers, [&] {
    for (uint32_t i = 0; i < 40; ++i) run(add_constant, {&all[i]}, {1});
    for (uint32_t i = 0; i < 40; ++i) run(add_buffer, {&all[40 + i], &all[i]});
  });
  CHECK(replay(tape, std::vector<bool>(80, true), all.buffers) == 2);
  for (uint32_t i = 0; i < 40; ++i) {
    CHECK(all[i].get() == filled(i + 2));
    CHECK(all[40 + i].get() == filled(40 + i + i + 1 + i + 2));
  }
}

TEST_CASE("segment launch: elements of other lengths") {
  // Written quads, read words in their segment, and pairs, quads and words of what is bound by itself.
  const Program of_pairs{"412", 3, "if (id.x < 16u) { m0[id.x] += vec4<u32>(m1[id.x * 4u]) + m2[id.x].xyxy; }"};
  const Program of_quads{"424", 3, "if (id.x < 16u) { m0[id.x] += m1[id.x * 2u + 1u].xyxy + m2[id.x]; }"};
  const Program of_words{"441", 3, "if (id.x < 16u) { m0[id.x] += m1[id.x].wwww + vec4<u32>(m2[63u - id.x]); }"};
  const Program* const programs[] = {&of_pairs, &of_quads, &of_words};
  const Many all(74);
  std::vector<bool> kept(72, true);
  kept.resize(74);
  Tape tape = recorded(all.buffers, [&] {
    for (uint32_t i = 0; i < 36; ++i) run_typed(*programs[i % 3], {&all[i], &all[36 + i], &all[72 + i % 2]});
  });
  CHECK(replay(tape, kept, all.buffers) == 1);
  for (uint32_t i = 0; i < 36; ++i) CHECK(all[i].get() == filled(i + 2 * (36 + i + 72 + i % 2)));
}

TEST_CASE("segment launch: words that are written and quads that are written stay apart, atomics are read as such") {
  const Program of_quads{"4", 1, "if (id.x < 16u) { m0[id.x] += vec4<u32>(1u); }"};
  const Program of_atomics{"a1", 2, "atomicAdd(&m0[id.x], m1[id.x]);"};
  const Many all(48);
  Tape tape = recorded(all.buffers, [&] {
    for (uint32_t i = 0; i < 16; ++i) run(add_constant, {&all[i]}, {2});
    for (uint32_t i = 16; i < 32; ++i) run_typed(of_quads, {&all[i]});
    for (uint32_t i = 32; i < 40; ++i) run_typed(of_atomics, {&all[i], &all[8 + i]});
  });
  CHECK(replay(tape, std::vector<bool>(48, true), all.buffers) == 3);
  for (uint32_t i = 0; i < 16; ++i) CHECK(all[i].get() == filled(i + 4));
  for (uint32_t i = 16; i < 32; ++i) CHECK(all[i].get() == filled(i + 2));
  for (uint32_t i = 32; i < 40; ++i) CHECK(all[i].get() == filled(i + 2 * (8 + i)));
}

TEST_CASE("segment launch: what is worth gathering") {
  const Many all(40);
  const std::vector<bool> kept(40, true);
  const Words pages(uint64_t{1} << 20);
  const auto add_to = [&](uint32_t begin, uint32_t end) {
    for (uint32_t i = begin; i < end; ++i) run(add_constant, {&all[i]}, {1});
  };
  // As many as one launch binds.
  CHECK(worth_gathering(recorded(all.buffers, [&] { add_to(0, most_bindings()); }), kept).empty());
  CHECK(worth_gathering(recorded(all.buffers, [&] { add_to(0, most_bindings() + 1); }), kept) ==
        numbers_to(most_bindings() + 1));
  // One behind another.
  CHECK(worth_gathering(recorded(all.buffers,
                                 [&] {
                                   for (uint32_t i = 1; i < 40; ++i) run(add_buffer, {&all[i], &all[i - 1]});
                                 }),
                        kept)
            .empty());
  // What a copy or another kernel uses too, what nobody keeps, and what is large.
  Tape tape = recorded(all.buffers, [&] {
    add_to(0, 39);
    runtime().stream.copy(all[39].buffer(), 0, all[38].buffer(), 0, 256);
  });
  CHECK(worth_gathering(tape, kept) == numbers_to(38));
  const uint32_t few = most_bindings() + 1;
  CHECK(worth_gathering(tape, std::vector<bool>(few, true)) == numbers_to(few));
  std::vector<const Buffer*> given = all.buffers;
  given[0] = &pages.buffer();
  tape = recorded(given, [&] {
    run(add_constant, {&pages}, {1});
    add_to(1, 40);
  });
  CHECK(worth_gathering(tape, kept).size() == 39);
}

}  // namespace torch_webgpu
