// Tapes: what is recorded runs again with other buffers, parameters and random numbers, and what cannot is refused.
#include <memory>

#include "runtime/tape.h"
#include "support.h"

namespace torch_webgpu {
using namespace test;

namespace {

// Stops recording also where a check throws.
struct Recording {
  explicit Recording(Tape& tape, Stream& stream = runtime().stream) : stream(stream) {
    REQUIRE(stream.record_to(tape));
  }
  ~Recording() { stream.stop_recording(); }
  Stream& stream;
};

std::vector<uint32_t> filled(uint32_t value) { return std::vector<uint32_t>(64, value); }

}  // namespace

TEST_CASE("tape: a replay runs the launches and copies with the buffers it is given") {
  auto& stream = runtime().stream;
  const Words in(filled(1)), out(filled(0));
  Tape tape({&in.buffer(), &out.buffer()});
  {
    const Recording recording(tape);
    run(add_constant, {&in}, {5});
    run(add_buffer, {&out, &in});
    stream.copy(out.buffer(), 0, in.buffer(), 0, 128);
    run(add_buffer, {&out, &in});
  }
  REQUIRE(tape.failure() == "");
  CHECK(tape.launch_count() == 3);
  CHECK(out.get() == filled(12));  // recording runs too

  const Words other_in(filled(100)), other_out(filled(1000));
  const Buffer* slots[] = {&other_in.buffer(), &other_out.buffer()};
  stream.replay(tape, slots);
  auto expected_in = filled(105), expected_out = filled(1105 + 105);
  std::fill_n(expected_in.begin(), 32, 1105);
  std::fill_n(expected_out.begin(), 32, 2210);
  CHECK(other_in.get() == expected_in);
  CHECK(other_out.get() == expected_out);
  CHECK(out.get() == filled(12));
}

TEST_CASE("tape: buffers made while recording are the tape's own") {
  auto& [device, kernels, stream, pool] = runtime();
  const Words in(filled(3)), out(filled(0));
  Tape tape({&in.buffer(), &out.buffer()});
  {
    const Recording recording(tape);
    const Words scratch(64);
    stream.copy(in.buffer(), 0, scratch.buffer(), 0, 256);
    run(add_constant, {&scratch}, {1});
    run(add_buffer, {&out, &scratch});
  }
  REQUIRE(tape.failure() == "");
  REQUIRE(tape.slots().size() == 3);
  CHECK(tape.slots()[2].kind == Tape::Slot::own);
  Buffer* scratch = pool.allocate(tape.slots()[2].size_bytes);
  const Words other_in(filled(10)), other_out(filled(0));
  const Buffer* slots[] = {&other_in.buffer(), &other_out.buffer(), scratch};
  for (int i = 0; i < 3; ++i) stream.replay(tape, slots);
  CHECK(other_out.get() == filled(33));
  CHECK(other_in.get() == filled(10));
  pool.release(scratch);
}

TEST_CASE("tape: parameters can be patched between replays") {
  const Words out(filled(0));
  Tape tape({&out.buffer()});
  {
    const Recording recording(tape);
    run(add_constant, {&out}, {1});
  }
  const Buffer* slots[] = {&out.buffer()};
  tape.params(tape.steps()[0])[0] = 1000;
  runtime().stream.replay(tape, slots);
  CHECK(out.get() == filled(1001));
}

TEST_CASE("tape: random launches draw other numbers in each replay") {
  // m0[0..3] = the seed and the counter that the launch was given
  const Program numbers{"numbers", 1, "if (id.x < 4u) { m0[id.x] = p[0][id.x]; }", "4"};
  const Words out(filled(0));
  Tape tape({&out.buffer()}, {7, 100});
  {
    const Recording recording(tape);
    tape.took_random_numbers(8);
    Launch launch = make_launch(numbers, {out.binding()}, {7, 0, 104, 0});
    launch.random_word = 0;
    runtime().stream.dispatch(launch);
  }
  REQUIRE(tape.failure() == "");
  CHECK(tape.random_blocks() == 8);
  const Buffer* slots[] = {&out.buffer()};
  const RandomStart now{(uint64_t{3} << 32) | 9, (uint64_t{1} << 32) | 0xfffffffe};
  runtime().stream.replay(tape, slots, &now);
  const auto words = out.get();
  CHECK(words[0] == 9);
  CHECK(words[1] == 3);
  CHECK(words[2] == 2);  // 104 - 100 further, with a carry
  CHECK(words[3] == 2);
}

TEST_CASE("tape: random launches of another source take that source's numbers, and none of the generator's") {
  const Program numbers{"numbers", 1, "if (id.x < 4u) { m0[id.x] = p[0][id.x]; }", "4"};
  const Words out(filled(0));
  Tape tape({&out.buffer()}, {7, 100});
  {
    const Recording recording(tape);
    Launch launch = make_launch(numbers, {out.binding()}, {5, 0, 32, 0});
    launch.random_word = 0;
    launch.random_source = tape.add_random({5, 30});
    CHECK(launch.random_source == 1);
    runtime().stream.dispatch(launch);
  }
  REQUIRE(tape.failure() == "");
  CHECK(tape.random_blocks() == 0);
  const Buffer* slots[] = {&out.buffer()};
  const RandomStart now[] = {{1, 1}, {6, 40}};
  runtime().stream.replay(tape, slots, now);
  CHECK(out.get()[0] == 6);
  CHECK(out.get()[2] == 42);
}

TEST_CASE("tape: what a replay could not repeat makes it unusable") {
  auto& stream = runtime().stream;
  Words known(filled(1)), stranger(filled(1));
  const auto failure_of = [&](auto&& work) {
    Tape tape({&known.buffer()});
    const Recording recording(tape);
    work(tape);
    return tape.failure();
  };
  CHECK(failure_of([&](Tape&) { run(add_constant, {&known}, {1}); }) == "");
  CHECK(contains(failure_of([&](Tape&) { run(add_constant, {&stranger}, {1}); }), "neither given nor made"));
  CHECK(contains(failure_of([&](Tape&) { known.set({1}); }), "from the host"));
  CHECK(contains(failure_of([&](Tape&) { known.get(); }), "to the host"));
  CHECK(contains(failure_of([&](Tape& tape) {
                   tape.took_random_numbers(1);
                   tape.took_random_numbers(1);
                 }),
                 "random numbers on the host"));
  CHECK(contains(failure_of([&](Tape&) {
                   const Tape inner({});
                   stream.replay(inner, nullptr);
                 }),
                 "another tape"));
}

TEST_CASE("tape: one thread records while others go on") {
  const Words out(filled(0)), other(filled(0));
  Tape tape({&out.buffer()}), second({});
  {
    const Recording recording(tape);
    CHECK_FALSE(runtime().stream.record_to(second));
    std::thread([&] { run(add_constant, {&other}, {1}); }).join();
    run(add_constant, {&out}, {1});
  }
  CHECK(tape.launch_count() == 1);
  CHECK(tape.failure() == "");
  CHECK(other.get() == filled(1));
}

TEST_CASE("tape: a kernel outlives its place in the cache") {
  KernelCache kernels(runtime().device, 2);
  Stream stream(runtime().device, kernels);
  const Words out(filled(0));
  Tape tape({&out.buffer()});
  const Program kept{"kept", 1, "m0[id.x] += 1u;"};
  {
    const Recording recording(tape, stream);
    run(kept, {&out}, {}, 1, stream);
  }
  std::vector<Program> others;
  for (uint32_t i = 0; i < 8; ++i) others.push_back({"other " + std::to_string(i), 1, "m0[id.x] *= 1u;"});
  for (const auto& program : others) run(program, {&out}, {}, 1, stream);
  const Buffer* slots[] = {&out.buffer()};
  stream.replay(tape, slots);
  stream.synchronize();
  CHECK(out.get() == filled(2));
}

TEST_CASE("bindings: buffers that are only read may be bound twice") {
  const Words in(filled(4)), out(filled(0));
  const Program sum{"sum", 3, "m2[id.x] = m0[id.x] + m1[id.x];"};
  Launch launch = make_launch(sum, {in.binding(), in.binding(), out.binding()});
  launch.read_only = 0b011;
  launch.print = [](const Launch& self) {
    KernelSource source = source_of(*static_cast<const Program*>(self.context));
    for (const char* name : {"m0", "m1"}) {
      const auto at = source.wgsl.rfind("var<storage, read_write>", source.wgsl.find(std::string(" ") + name + ":"));
      source.wgsl.replace(at, 24, "var<storage, read>");
    }
    return source;
  };
  runtime().stream.dispatch(launch);
  CHECK(out.get() == filled(8));
}

}  // namespace torch_webgpu
