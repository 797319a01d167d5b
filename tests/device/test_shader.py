"""Kernels of one's own: torch.webgpu.compile_shader."""

import re
from typing import Any

import pytest
import torch

from tests.device.process import RUNTIMES, output_of
from tests.support import assert_same, on_device
from torch_webgpu import wgsl

SCALE = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@group(0) @binding(2) var<uniform> alpha: f32;

@compute @workgroup_size(64)
fn scale(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < arrayLength(&x)) { out[id.x] = alpha * x[id.x]; }
}
"""
MANY = """
// @group(9) @binding(9) var<storage> not_here: array<f32>;  /* nor this
/* fn nested() { /* deeper */ @compute fn nothing() {} */
struct Walk { start: u32, step: vec2<i32>, @align(16) scale: f32, place: vec3f, last: u32 }
struct Both { low: f32, high: f32 }
alias Floats = array<f32>;
const kSize = 8u;
@group(7) @binding(12) var<storage, read_write> out: Floats;
@group(3) @binding(1) var<uniform> walk: Walk;
@binding(4) @group(7) var<storage> x: array<Both>;
var<workgroup> shared_sum: array<f32, kSize>;
@group(0) @binding(4) var<storage, read_write> counts: array<atomic<u32>>;
@group(0) @binding(1) var<uniform> low: i32;
@group(0) @binding(5) var<uniform> high: vec2u;

fn sum_of(i: u32) -> f32 { return x[i].low + x[i].high; }

@compute @workgroup_size(kSize)
fn fields() {
  out[0] = f32(walk.start); out[1] = f32(walk.step.x); out[2] = f32(walk.step.y); out[3] = walk.scale;
  out[4] = walk.place.x; out[5] = walk.place.y; out[6] = walk.place.z; out[7] = f32(walk.last);
}
@compute @workgroup_size(4) fn sums(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < arrayLength(&x)) { out[id.x] = sum_of(id.x); }
}
@compute @workgroup_size(kSize, 1, 1)
fn count(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let x = i32(id.x);
  for (var walk = 0; walk < 1; walk++) { let out = x; if (out >= low && out < i32(high.y)) {
    atomicAdd(&counts[0], high.x); } }
  if (id.x == 0u) { atomicStore(&counts[1], groups.x); }
}
"""


@pytest.fixture(scope="module")
def scale() -> Any:
    return torch.webgpu.compile_shader(SCALE).scale


@pytest.fixture(scope="module")
def many() -> Any:
    return torch.webgpu.compile_shader(MANY)


def device_range(count: int) -> torch.Tensor:
    return torch.arange(count, dtype=torch.float32, device="webgpu")


def test_tensors_and_a_number(scale: Any) -> None:
    for count in (1, 63, 64, 65, 10_000):
        x, out = device_range(count), torch.zeros(count, device="webgpu")
        with on_device() as results:
            assert scale(x, out, 3.5) is None
            results.append(out)
        assert_same(out, torch.arange(count, dtype=torch.float32) * 3.5, exact=True)


def test_the_library_lists_its_kernels(many: Any) -> None:
    assert dir(many) == ["count", "fields", "sums"]
    assert repr(many.sums) == "<webgpu kernel sums(out: storage, x: storage)>"
    assert many.sums.__name__ == "sums"
    with pytest.raises(AttributeError, match="no kernel 'mean', only fields, sums, count"):
        _ = many.mean


def test_any_groups_and_bindings_and_only_what_is_used(many: Any) -> None:
    out = torch.zeros(4, device="webgpu")
    pairs = torch.arange(8.0).view(4, 2)
    many.sums(out, pairs.to("webgpu"), threads=4)
    assert_same(out, pairs.sum(1))


def test_uniform_structs_and_vectors(many: Any) -> None:
    values = {"start": 7, "step": (-3, 2**31 - 1), "scale": 0.5, "place": [1.0, 2.0, 3.0], "last": 2**24}
    expected = torch.tensor([7, -3, 2**31 - 1, 0.5, 1, 2, 3, 2**24])
    for walk in (values, tuple(values.values())):
        out = torch.zeros(8, device="webgpu")
        many.fields(out, walk, threads=1)
        assert_same(out, expected)


def test_hidden_names_atomics_and_group_sizes(many: Any) -> None:
    sizes: Any = ((None, 13), (16, 7), ((4, 1), 25), (1, 100))
    for group_size, groups in sizes:
        counts = torch.zeros(2, dtype=torch.int32, device="webgpu")
        many.count(counts, 10, (3, 30), threads=(100,), group_size=group_size)
        assert counts.tolist() == [3 * 20, groups]


def test_layout_of_types() -> None:
    types = wgsl.parse("""
        struct Inner { a: vec3<f32>, b: f32, c: vec2<f16> }
        struct Outer { @size(32) one: u32, inner: array<Inner, 3>, m: mat4x3<f32>, tail: array<vec4<u32>> }
        alias Word = u32; struct Short { w: Word, h: vec3h }
    """).types
    inner, outer, short = types["Inner"], types["Outer"], types["Short"]
    assert (inner.size, inner.align) == (32, 16)
    assert isinstance(outer, wgsl.Struct)
    assert [(name, offset) for name, _, offset in outer.members] == [
        ("one", 0),
        ("inner", 32),
        ("m", 128),
        ("tail", 192),
    ]
    assert (outer.size, short.size, short.align) == (208, 16, 8)


@pytest.mark.parametrize("dtype", [torch.int32, torch.uint8, torch.int64, torch.float16, torch.bool], ids=str)
def test_any_dtype_is_memory(dtype: torch.dtype) -> None:
    lib = torch.webgpu.compile_shader("""
        @group(0) @binding(0) var<storage, read> x: array<u32>;
        @group(0) @binding(1) var<storage, read_write> out: array<u32>;
        @compute @workgroup_size(8) fn words(@builtin(global_invocation_id) id: vec3u) {
          if (id.x < arrayLength(&x)) { out[id.x] = x[id.x]; }
        }
    """)
    x = (torch.arange(24) % 2).to(dtype)
    out = torch.zeros(24, dtype=dtype, device="webgpu")
    lib.words(x.to("webgpu"), out, threads=48)
    assert_same(out, x)


def test_views_and_shared_buffers(scale: Any) -> None:
    base = device_range(1000)
    out = torch.zeros(10, device="webgpu")
    scale(base[3:13], out, 1)  # begins where no binding can
    assert_same(out, torch.arange(3.0, 13))
    scale(base[:500], base[500:], 2)  # reads and writes one buffer
    assert_same(base, torch.cat([torch.arange(500.0), torch.arange(500.0) * 2]))
    whole = torch.arange(8.0).to("webgpu")
    scale(whole, whole, -1.0)
    assert_same(whole, -torch.arange(8.0))
    scale(whole[2:5], whole[2:5], 10)
    assert whole.tolist() == [0, -1, -20, -30, -40, -5, -6, -7]


def test_order_with_other_operations(scale: Any) -> None:
    x = torch.ones(100, device="webgpu")
    for _ in range(20):
        y = torch.empty_like(x)
        scale(x + 1, y, 0.5)
        x = y * 2 - 1
    assert_same(x, torch.ones(100))


def test_nothing_to_do(scale: Any) -> None:
    empty, some = torch.empty(0, device="webgpu"), device_range(4)
    with on_device(False):
        scale(empty, empty, 1.0)
        scale(some, some, 1.0, threads=0)


@pytest.mark.parametrize(
    ("args", "kwargs", "error", "message"),
    [
        (lambda x: (x, x), {}, TypeError, r"scale\(\) takes 3 arguments \(x, out, alpha\), but 2 were given"),
        (lambda x: (x, x, 1, 2), {}, TypeError, "but 4 were given"),
        (lambda x: (x, 3, 1), {}, TypeError, r"scale\(\): out takes a tensor, not int"),
        (lambda x: (x, x.cpu(), 1), {}, ValueError, r"scale\(\): out takes a tensor on webgpu, but it is on cpu"),
        (lambda x: (x, x, x), {}, TypeError, r"scale\(\): alpha: f32 takes a number, not a tensor"),
        (lambda x: (x, x, True), {}, TypeError, r"scale\(\): alpha: f32 takes a number, not a bool"),
        (lambda x: (x, x, "1"), {}, TypeError, r"scale\(\): alpha: f32 takes a number, not str"),
        (lambda x: (x, x, 1e60), {}, ValueError, r"scale\(\): alpha: 1e\+60 is out of range for f32"),
        (lambda x: (x, x, 10**400), {}, ValueError, "is out of range for f32"),
        (lambda x: (x, x[:0], 1), {}, ValueError, r"scale\(\): out has 0 bytes, but its type in the text needs 4"),
        (lambda x: (x, x, 1), {"threads": -1}, ValueError, "threads may not be negative"),
        (lambda x: (x, x, 1), {"threads": 1.5}, TypeError, "threads takes a whole number or up to three of them"),
        (lambda x: (x, x, 1), {"threads": (1, 1, 1, 1)}, TypeError, "up to three"),
        (lambda x: (x, x, 1), {"threads": 2**31}, ValueError, "workgroups along a dimension, and the adapter runs"),
        (lambda x: (x, x, 1), {"group_size": 2**20}, ValueError, r"the group_size \(1048576, 1, 1\) is not between"),
        (lambda x: (x, x, 1), {"group_size": (64, 64)}, ValueError, "in all"),
        (lambda x: (x, x, 1), {"group_size": 0}, ValueError, "is not between"),
    ],
)
def test_wrong_calls(scale: Any, args: Any, kwargs: Any, error: type[Exception], message: str) -> None:
    given = args(torch.zeros(4, device="webgpu"))
    with pytest.raises(error, match=message), on_device(False):
        scale(*given, **kwargs)


def test_wrong_values_of_uniforms(many: Any) -> None:
    counts, out = torch.zeros(2, dtype=torch.int32, device="webgpu"), torch.zeros(8, device="webgpu")
    good = (1, (2, 3), 0.5, (1, 2, 3), 4)
    for call, error, message in [
        (lambda: many.count(counts, 1.5, (1, 2)), TypeError, r"count\(\): low: i32 takes a whole number, not float"),
        (lambda: many.count(counts, 2**31, (1, 2)), ValueError, "low: 2147483648 is out of range for i32"),
        (lambda: many.count(counts, 1, (1, -2)), ValueError, r"high\[1\]: -2 is out of range for u32"),
        (lambda: many.count(counts, 1, (1, 2, 3)), ValueError, "high: vec2<u32> has 2 elements, but 3 values"),
        (lambda: many.count(counts, 1, 5), TypeError, "high: vec2<u32> takes a sequence of values, not int"),
        (lambda: many.fields(out, good[:4]), ValueError, "walk: Walk has 5 members, but 4 values"),
        (lambda: many.fields(out, {"start": 1}), ValueError, "has the members start, step, scale, place, last, not"),
        (lambda: many.fields(out, (1, (2, 3.0), *good[2:])), TypeError, r"walk\.step\[1\]: i32 takes a whole number"),
    ]:
        with pytest.raises(error, match=message), on_device(False):
            call()


def test_elements_wider_than_the_tensor() -> None:
    lib = torch.webgpu.compile_shader("""
        @group(0) @binding(0) var<storage, read_write> quads: array<vec4<f32>>;
        @compute @workgroup_size(1) fn fill() { quads[0] = vec4(1.0); }
    """)
    with pytest.raises(ValueError, match="quads has 8 bytes, but its type in the text needs 16"):
        lib.fill(torch.zeros(2, device="webgpu"))
    out = torch.zeros(4, device="webgpu")
    lib.fill(out, threads=1)
    assert out.tolist() == [1] * 4


BROKEN = {
    "a call of nothing": ("alpha * x[id.x]", "alpha * nothing(id.x)", 7),
    "after a comment with letters of two bytes": ("{ out", "/* äöü */ { nothing", 7),
    "after renumbering": ("var<uniform> alpha: f32", "var<uniform> alpha: nothing", 3),
}


@pytest.mark.parametrize("case", BROKEN)
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_the_compilers_errors_name_the_users_line(runtime: str, case: str) -> None:
    good, bad, row = BROKEN[case]
    source = SCALE.strip().replace("binding(2)", "binding(222)").replace(good, bad)
    line = source.split("\n")[row - 1]
    lines = output_of(
        f"""
        import torch
        source = {source!r}
        for text in (source, source.replace("\\n", "\\r\\n")):
            try:
                torch.webgpu.compile_shader(text)
            except SyntaxError as error:
                print(error.msg, error.lineno, error.offset, error.text == {line!r}, sep="|")
        """,
        TORCH_WEBGPU_RUNTIME=runtime,
    )
    said = "\n".join(lines)
    found = re.findall(r"compile_shader: (\d+):(\d+): (.+)\n  (.*)\n( *)\^\|(\d+)\|(\d+)\|True", said)
    assert len(found) == 2, said
    for at_row, at_column, reason, shown, indent, lineno, offset in found:
        assert int(at_row) == int(lineno) == row
        assert int(at_column) == int(offset) == len(indent) - 1
        assert line[int(at_column) - 1 :].startswith("nothing"), said
        assert reason and shown == line


def test_texts_without_a_kernel() -> None:
    with pytest.raises(SyntaxError, match="1:1: "):
        torch.webgpu.compile_shader("bla")
    with pytest.raises(ValueError, match="no entry point"):
        torch.webgpu.compile_shader("fn helper() {}")
    with pytest.raises(TypeError, match="not bytes"):
        torch.webgpu.compile_shader(b"fn helper() {}")
    with pytest.raises(SyntaxError):
        torch.webgpu.compile_shader(SCALE[: SCALE.index("{ out")])
    with pytest.raises(ValueError, match="uses no storage buffer"):
        torch.webgpu.compile_shader("@compute @workgroup_size(1) fn idle() {}")
    with pytest.raises(ValueError, match="uses picture, which is neither"):
        torch.webgpu.compile_shader("""
            @group(0) @binding(0) var picture: texture_2d<f32>;
            @compute @workgroup_size(1) fn look() { _ = textureDimensions(picture); }
        """)
    with pytest.raises(ValueError, match=r"uses 5 uniforms of 20 bytes.*one struct"):
        uniforms = "".join(f"@group(1) @binding({i}) var<uniform> u{i}: f32;" for i in range(5))
        torch.webgpu.compile_shader(
            f"{uniforms} @group(0) @binding(0) var<storage, read_write> out: array<f32>;"
            "@compute @workgroup_size(1) fn five() { out[0] = u0 + u1 + u2 + u3 + u4; }"
        )


def test_a_large_uniform_and_small_ones() -> None:
    lib = torch.webgpu.compile_shader("""
        @group(0) @binding(0) var<uniform> table: array<vec4f, 20>;
        @group(0) @binding(1) var<uniform> factor: f32;
        @group(0) @binding(2) var<storage, read_write> out: array<vec4f>;
        @compute @workgroup_size(4) fn look(@builtin(global_invocation_id) id: vec3u) {
          if (id.x < arrayLength(&out)) { out[id.x] = factor * table[id.x]; }
        }
    """)
    table = torch.arange(80.0).view(20, 4)
    out = torch.zeros(20, 4, device="webgpu")
    lib.look(table.tolist(), 2, out)
    assert_same(out, table * 2)


def test_writing_counts_as_a_change(scale: Any) -> None:
    x = torch.ones(4, device="webgpu", requires_grad=True)
    y = x.exp()
    before = y._version
    scale(x.detach(), y.detach(), 2)
    assert y._version > before
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    with torch.inference_mode():
        out = torch.zeros(4, device="webgpu")
        scale(torch.ones(4, device="webgpu"), out, 2)
        assert out.tolist() == [2] * 4


def test_in_an_autograd_function(scale: Any) -> None:
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor, alpha: float) -> torch.Tensor:
            ctx.alpha = alpha
            out = torch.empty_like(x)
            scale(x, out, alpha)
            return out

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
            out = torch.empty_like(gradient)
            scale(gradient.contiguous(), out, ctx.alpha)
            return out, None

    x = device_range(100).requires_grad_()
    Scale.apply(x, 2.5).square().sum().backward()
    assert_same(x.grad, torch.arange(100.0) * 12.5)


def test_in_a_custom_op(scale: Any) -> None:
    @torch.library.custom_op("webgpu_tests::scale", mutates_args=())
    def op(x: torch.Tensor, alpha: float) -> torch.Tensor:
        out = torch.empty_like(x)
        scale(x, out, alpha)
        return out

    @op.register_fake
    def _(x: torch.Tensor, alpha: float) -> torch.Tensor:
        return torch.empty_like(x)

    def keep(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.alpha = inputs[1]

    op.register_autograd(lambda ctx, gradient: (op(gradient.contiguous(), ctx.alpha), None), setup_context=keep)
    x = device_range(100).requires_grad_()
    y = op(x, 3.0)
    assert_same(y.detach(), torch.arange(100.0) * 3)
    y.sum().backward()
    assert_same(x.grad, torch.full((100,), 3.0))
    checks = ("test_schema", "test_faketensor", "test_aot_dispatch_static")
    torch.library.opcheck(op, (device_range(10).requires_grad_(), 2.0), test_utils=checks)
