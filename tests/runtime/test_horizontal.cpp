// Launches of a tape side by side: what is put together, what has to wait, and that a replay gives the same.
#include <memory>

#include "runtime/horizontal.h"
#include "support.h"

namespace torch_webgpu {
using namespace test;

namespace {

const Program add_other{"add_other", 3, "m0[id.x] = m1[id.x] + m2[id.x] * p[1].y;"};
const Program of_eight{"of_eight", 1, "m0[id.x] += 1u;", "8"};

std::vector<uint32_t> filled(uint32_t value) { return std::vector<uint32_t>(64, value); }

struct Recorded {
  template <class Work>
  Recorded(const std::vector<const Buffer*>& given, const Work& work) : tape(given) {
    tape.prepare_to_fuse();
    REQUIRE(runtime().stream.record_to(tape));
    work();
    runtime().stream.stop_recording();
    REQUIRE(tape.failure() == "");
    fuse_horizontally(tape, runtime().kernels, runtime().device);
    tape.share_memory({});
  }
  Tape tape;
};

std::optional<KernelText> read(const std::string& wgsl, uint32_t bindings = 1) {
  return KernelText::read({"kernel", wgsl}, {bindings, 0, 1});
}

const std::string kHead =
    "@group(0) @binding(0) var<storage, read_write> m0: array<u32>;\n"
    "@group(1) @binding(0) var<uniform> given: array<vec4<u32>, 64>;\n";
const std::string kMain = "@compute @workgroup_size(8)\nfn main(@builtin(workgroup_id) group: vec3<u32>) {";

}  // namespace

TEST_CASE("horizontal: launches that do not depend on one another become one") {
  const Words a(filled(1)), b(filled(2)), c(filled(3)), out(filled(0));
  const std::vector<const Buffer*> slots{&a.buffer(), &b.buffer(), &c.buffer(), &out.buffer()};
  Recorded recorded(slots, [&] {
    run(add_constant, {&a}, {10});
    run(add_constant, {&b}, {20});
    run(add_other, {&out, &a, &b}, {0, 0, 0, 0, 0, 3});
    run(add_constant, {&c}, {30});
  });
  CHECK(recorded.tape.launch_count() == 2);
  CHECK(out.get() == filled(11 + 3 * 22));
  const Words a2(filled(100)), b2(filled(200)), c2(filled(300)), out2(filled(0));
  const Buffer* others[] = {&a2.buffer(), &b2.buffer(), &c2.buffer(), &out2.buffer()};
  runtime().stream.replay(recorded.tape, others);
  CHECK(a2.get() == filled(110));
  CHECK(b2.get() == filled(220));
  CHECK(c2.get() == filled(330));
  CHECK(out2.get() == filled(110 + 3 * 220));
}

TEST_CASE("horizontal: a launch waits for what writes its operands and for what reads the one that it writes") {
  const Words a(filled(1)), b(filled(2));
  const std::vector<const Buffer*> slots{&a.buffer(), &b.buffer()};
  Recorded recorded(slots, [&] {
    run(add_buffer, {&a, &b});     // a = 3
    run(add_constant, {&b}, {5});  // b = 7
    run(add_buffer, {&a, &b});     // a = 10
    runtime().stream.copy(a.buffer(), 0, b.buffer(), 0, 256);
    run(add_constant, {&a}, {1});
  });
  CHECK(recorded.tape.launch_count() == 4);
  const Words a2(filled(1)), b2(filled(2));
  const Buffer* others[] = {&a2.buffer(), &b2.buffer()};
  runtime().stream.replay(recorded.tape, others);
  CHECK(a2.get() == filled(11));
  CHECK(b2.get() == filled(10));
}

TEST_CASE("horizontal: what the pool hands out again does not tie launches together and its memory is shared") {
  auto& [device, kernels, stream, pool] = runtime();
  const Words in(filled(3)), same(filled(3));
  Words first(filled(0)), second(filled(0));
  const std::vector<const Buffer*> slots{&in.buffer(), &same.buffer(), &first.buffer(), &second.buffer()};
  const auto through_scratch = [&](const Words& out) {
    const Words scratch(64);
    run(add_other, {&scratch, &in, &same}, {0, 0, 0, 0, 0, 1});
    run(add_other, {&out, &scratch, &in}, {0, 0, 0, 0, 0, 1});
  };
  Recorded recorded(slots, [&] {
    through_scratch(first);
    through_scratch(second);
    run(add_constant, {&second}, {1});
    const Words late(64);
    run(add_other, {&late, &second, &in}, {0, 0, 0, 0, 0, 1});
    run(add_other, {&first, &late, &in}, {0, 0, 0, 0, 0, 1});
  });
  CHECK(recorded.tape.launch_count() == 5);
  std::vector<const Buffer*> buffers(slots);
  std::vector<Buffer*> made;
  for (size_t i = slots.size(); i < recorded.tape.slots().size(); ++i) {
    const auto& slot = recorded.tape.slots()[i];
    if (slot.kind == Tape::Slot::own) made.push_back(pool.allocate(slot.size_bytes));
    buffers.push_back(slot.kind == Tape::Slot::own ? made.back() : nullptr);
  }
  CHECK(made.size() == 2);
  first.set(filled(0));
  second.set(filled(0));
  stream.replay(recorded.tape, buffers.data());
  CHECK(second.get() == filled(10));
  CHECK(first.get() == filled(16));
  for (auto* buffer : made) pool.release(buffer);
}

TEST_CASE("horizontal: kernels of other workgroups and more than the adapter binds stay apart") {
  std::vector<std::unique_ptr<Words>> all;
  std::vector<const Buffer*> slots;
  for (int i = 0; i < 24; ++i) {
    all.push_back(std::make_unique<Words>(filled(i)));
    slots.push_back(&all.back()->buffer());
  }
  const uint32_t most = std::min({8u, kMaxBindings, runtime().device.limits.maxStorageBuffersPerShaderStage});
  Recorded many(slots, [&] {
    for (const auto& words : all) run(add_constant, {words.get()}, {1});
  });
  CHECK(many.tape.launch_count() == (24 + most - 1) / most);
  runtime().stream.replay(many.tape, slots.data());
  for (uint32_t i = 0; i < all.size(); ++i) CHECK(all[i]->get() == filled(i + 2));
  Recorded sizes({slots[0], slots[1]}, [&] {
    run(add_constant, {all[0].get()}, {1});
    run(of_eight, {all[1].get()}, {}, 8);
  });
  CHECK(sizes.tape.launch_count() == 2);
}

TEST_CASE("horizontal: what a text writes") {
  const auto writes = [](const std::string& body) {
    const auto text = read(kHead + kMain + body + "}");
    REQUIRE(text);
    return text->storages()[0].is_written;
  };
  for (const char* body :
       {"m0[0] = 1u;", "m0[group.x][1] = 2u;", "m0[f(m0[1])] += 1u;", "m0[0] <<= 1u;", "m0[1]++;", "let p = &m0;"}) {
    CHECK_MESSAGE(writes(body), body);
  }
  for (const char* body : {"let x = m0[0];", "let y = m0[0] == 1u;", "let z = m0[2] <= 1u;", "let w = m0[0] >= 2u;",
                           "// m0[0] = 1u;\n", "let v = (m0[0] << 1u) != 3u;"}) {
    CHECK_MESSAGE(!writes(body), body);
  }
}

TEST_CASE("horizontal: the names of a part get a prefix but not those of members and other texts") {
  const auto text = read("enable subgroups;\n" + kHead +
                         "struct Pair { v: u32, given_out: u32 }\nalias T = u32;\nconst SIZE = 4u;\n"
                         "fn v(p: Pair) -> T { return p.v + SIZE; } /* v */\n" +
                         "const WIDE = 8u;\n@compute @workgroup_size(WIDE, 1)\n"
                         "fn main(@builtin(workgroup_id) g: vec3<u32>, @builtin(local_invocation_index) lane: u32) {"
                         "m0[lane] = v(Pair(given[g.x / 4u].x, u32(1e-3)));}");
  REQUIRE(text);
  CHECK(text->workgroup_size() == "8");
  CHECK(text->directives() == std::vector<std::string>{"enable subgroups;"});
  const std::string part = text->part("a_", {{"bound3"}}, "5");
  CHECK(contains(part, "struct a_Pair { v: u32, given_out: u32 }"));
  CHECK(contains(part, "fn a_v(p: a_Pair) -> a_T { return p.v + a_SIZE; }"));
  CHECK(contains(part, "bound3[lane] = a_v(a_Pair(all_params[5 + u32(g.x / 4u)].x, u32(1e-3)));"));
  CHECK_FALSE(contains(part, "@"));
  CHECK(text->call("a_", "1u", "2u") == "a_main(vec3<u32>(workgroup_id.x - 1u, 0u, 0u), local_invocation_index)");
}

TEST_CASE("horizontal: texts that cannot be a part") {
  CHECK(read(kHead + kMain + "}"));
  CHECK_FALSE(read(kHead + kMain + "}", 2));
  CHECK_FALSE(read(kHead + kMain + "}\n@compute @workgroup_size(1) fn second() {}"));
  CHECK_FALSE(read(kHead + "@compute @workgroup_size(4, 2) fn main(@builtin(global_invocation_id) i: vec3<u32>) {}"));
  CHECK_FALSE(read("@group(0) @binding(0) var<storage> m0: array<u32>;\n@compute @workgroup_size(1) fn main() {}"));
  CHECK_FALSE(read("@group(0) @binding(0) var<storage> m0: array<u32>;\n@group(1) @binding(0) var<uniform> n: u32;\n" +
                   kMain + "}"));
}

}  // namespace torch_webgpu
