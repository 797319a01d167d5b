// The texts that load and store, spelled out: a printer that changes one of them changes kernels of every family.
#include <doctest/doctest.h>

#include "shader/memory.h"

namespace torch_webgpu::test {

TEST_CASE("an element of each size is loaded from words") {
  CHECK(Memory{"m", 1}.load("i") == "(m[i >> 2u] >> ((i & 3u) * 8u))");
  CHECK(Memory{"m", 2}.load("i") == "(m[i >> 1u] >> ((i & 1u) * 16u))");
  CHECK(Memory{"m", 4}.load("i") == "m[i]");
  CHECK(Memory{"m", 8}.load("i") == "vec2<u32>(m[i * 2u], m[i * 2u + 1u])");
  CHECK(Memory{"m", 16}.load("i") == "vec4<u32>(m[i * 4u], m[i * 4u + 1u], m[i * 4u + 2u], m[i * 4u + 3u])");
}

TEST_CASE("what lies beside a small element is masked when it is loaded alone") {
  CHECK(Memory{"m", 1}.load_alone("i") == "((m[i >> 2u] >> ((i & 3u) * 8u)) & 0xffu)");
  CHECK(Memory{"m", 2}.load_alone("i") == "((m[i >> 1u] >> ((i & 1u) * 16u)) & 0xffffu)");
  CHECK(Memory{"m", 4}.load_alone("i") == "m[i]");
}

TEST_CASE("the array decides how a word is reached") {
  CHECK(Memory{"m", 4, "atomic<u32>"}.load("i") == "atomicLoad(&m[i])");
  CHECK(Memory{"m", 4, "vec2<u32>"}.load("i") == "m[(i) >> 1u][(i) & 1u]");
  CHECK(Memory{"m", 4, "vec4<u32>"}.load("i") == "m[(i) >> 2u][(i) & 3u]");
  CHECK(Memory{"m", 8, "vec2<u32>"}.load("i") == "m[i]");
  CHECK(Memory{"m", 16, "vec4<u32>"}.load("i") == "m[i]");
  CHECK(Memory{"m", 2, "vec2<u32>"}.load("i") == "(m[(i >> 1u) >> 1u][(i >> 1u) & 1u] >> ((i & 1u) * 16u))");
}

TEST_CASE("an array in pages is reached by functions") {
  const Memory words{"m", 4, "u32", true}, halves{"m", 2, "atomic<u32>", true};
  CHECK(words.load("i") == "fetch_m(i)");
  CHECK(words.store("i", "v") == "  put_m(i, v);\n");
  CHECK(halves.load_alone("i") == "((fetch_m(i >> 1u) >> ((i & 1u) * 16u)) & 0xffffu)");
  CHECK(halves.store("i", "v") ==
        "  let shift = (i % 2u) * 16u;\n  and_m(i / 2u, ~(0xffffu << shift));\n  or_m(i / 2u, v << shift);\n");
  CHECK(halves.swap("i", "a", "b") == "swap_m(i, a, b)");
}

TEST_CASE("an index or an element that is an expression is grouped") {
  CHECK(Memory{"m", 2}.load("i + 1u") == "(m[(i + 1u) >> 1u] >> (((i + 1u) & 1u) * 16u))");
  CHECK(Memory{"m", 2}.load("(i) * (j)") == "(m[((i) * (j)) >> 1u] >> ((((i) * (j)) & 1u) * 16u))");
  CHECK(Memory{"m", 2}.load("at(i, j)") == "(m[at(i, j) >> 1u] >> ((at(i, j) & 1u) * 16u))");
  CHECK(Memory{"m", 8}.store("i + j", "v") == "  m[(i + j) * 2u] = v.x;\n  m[(i + j) * 2u + 1u] = v.y;\n");
}

TEST_CASE("an element is evaluated once and before it is stored") {
  CHECK(Memory{"m", 4}.store("i", "f(x)") == "  m[i] = f(x);\n");
  CHECK(Memory{"m", 4, "atomic<u32>"}.store("i", "f(x)") == "  atomicStore(&m[i], f(x));\n");
  CHECK(Memory{"m", 8}.store("i", "f(x)") == "  let raw = f(x);\n  m[i * 2u] = raw.x;\n  m[i * 2u + 1u] = raw.y;\n");
  CHECK(Memory{"m", 8, "vec2<u32>"}.store("i", "f(x)") == "  m[i] = f(x);\n");
  CHECK(Memory{"m", 2, "atomic<u32>"}.store("i", "f(x)") ==
        "  let shift = (i % 2u) * 16u;\n  let raw = f(x);\n  atomicAnd(&m[i / 2u], ~(0xffffu << shift));\n"
        "  atomicOr(&m[i / 2u], raw << shift);\n");
  CHECK(Memory{"m", 1, "atomic<u32>"}.store("i", "v", "") ==
        "let shift = (i % 4u) * 8u;\natomicAnd(&m[i / 4u], ~(0xffu << shift));\natomicOr(&m[i / 4u], v << shift);\n");
}

TEST_CASE("an owner of a word puts elements into it") {
  const Memory halves{"m", 2}, bytes{"m", 1};
  CHECK(halves.elements_per_word() == "2u");
  CHECK(bytes.elements_per_word() == "4u");
  CHECK(halves.word_index("i") == "i >> 1u");
  CHECK(halves.shifted("v", "j") == "(v << (j * 16u))");
  CHECK(bytes.inserted("word", "v", "j") == "(word & ~(0xffu << (j * 8u))) | (v << (j * 8u))");
}

TEST_CASE("quads") {
  const RawQuad raw = {"a", "b", "c", "d"};
  CHECK(std::string(array_of_quads(1)) == "u32");
  CHECK(Memory{"m", 1}.load_quad("q", "i") == "  let q = m[i];\n");
  CHECK(Memory{"m", 1}.raw_of_quad("q", 2) == "((q >> 16u) & 0xffu)");
  CHECK(Memory{"m", 1}.store_quad("i", raw) == "  m[i] = a | (b << 8u) | (c << 16u) | (d << 24u);\n");
  CHECK(std::string(array_of_quads(2)) == "vec2<u32>");
  CHECK(Memory{"m", 2}.raw_of_quad("q", 0) == "(q.x & 0xffffu)");
  CHECK(Memory{"m", 2}.raw_of_quad("q", 3) == "(q.y >> 16u)");
  CHECK(Memory{"m", 2}.store_quad("i", raw) == "  m[i] = vec2<u32>(a | (b << 16u), c | (d << 16u));\n");
  CHECK(std::string(array_of_quads(4)) == "vec4<u32>");
  CHECK(Memory{"m", 4}.raw_of_quad("q", 2) == "q.z");
  CHECK(Memory{"m", 4}.store_quad("i", raw) == "  m[i] = vec4<u32>(a, b, c, d);\n");
  CHECK(std::string(array_of_quads(8)) == "vec4<u32>");
  CHECK(Memory{"m", 8}.load_quad("q", "i") == "  let q = m[i * 2u];\n  let qh = m[i * 2u + 1u];\n");
  CHECK(Memory{"m", 8}.raw_of_quad("q", 1) == "q.zw");
  CHECK(Memory{"m", 8}.raw_of_quad("q", 2) == "qh.xy");
  CHECK(Memory{"m", 8}.store_quad("i", raw) == "  m[i * 2u] = vec4<u32>(a, b);\n  m[i * 2u + 1u] = vec4<u32>(c, d);\n");
}

TEST_CASE("raw elements are values of the type that a kernel computes in") {
  CHECK(from_raw(DType::bf16, Compute::f32, "r") == "load_bf16(r)");
  CHECK(from_raw(DType::i64, Compute::f32, "r") == "f32_from_i64(r)");
  CHECK(to_raw(DType::boolean, Compute::f32, "v") == "store_bool(bool_from_f32(v))");
  CHECK(floats_of_quad(DType::f32, "q") == "bitcast<vec4<f32>>(q)");
  CHECK(floats_of_quad(DType::f16, "q") == "vec4<f32>(unpack2x16float(q.x), unpack2x16float(q.y))");
  CHECK(quad_of_floats(DType::f32, "v") == "bitcast<vec4<u32>>(v)");
  CHECK(quad_of_floats(DType::bf16, "v") ==
        "vec2<u32>(store_bf16(v.x) | (store_bf16(v.y) << 16u), store_bf16(v.z) | (store_bf16(v.w) << 16u))");
}

}  // namespace torch_webgpu::test
