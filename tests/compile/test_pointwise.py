"""Fused pointwise kernels: values, dtypes, layouts, and how many launches there are."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from tests.compile.support import check, compiled, count, with_once
from tests.support import DTYPES, FLOATS, INTS, assert_same, assert_same_bits, make, to_device


def test_chain_is_one_launch() -> None:
    def chain(x: torch.Tensor) -> torch.Tensor:
        for _ in range(100):
            x = x + 1
        return x

    check(chain, torch.randn(64, 33), launches=1)


def test_gelu_is_one_launch() -> None:
    check(lambda x, w, b: F.gelu(x * w + b), torch.randn(64, 128), torch.randn(128), torch.randn(128), launches=1)


def test_kernel_names_its_ops() -> None:
    from torch._inductor.utils import run_and_get_code

    call = compiled(lambda x: F.gelu(x + 1) * 2)
    _, code = run_and_get_code(call, torch.ones(8, device="webgpu"))
    assert "'fused_add_gelu_mul'" in code[0]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(4, 32), (5, 7), (3, 1, 6)], ids=str)
def test_arithmetic(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    a, b = make(shape, dtype, 1, (-9, 9)), make(shape, dtype, 3, (-9, 9))
    if dtype is torch.bool:
        check(lambda a, b: (a & b, a | b, a ^ b, ~a, a + b, a * b, a < b), a, b)
    else:
        check(lambda a, b: (a + b, a - b, a * b + a, a.maximum(b), a < b, a == b, a.neg(), a.abs()), a, b)


@pytest.mark.parametrize("dtype", with_once(INTS, torch.int64), ids=str)
def test_integers_wrap(dtype: torch.dtype) -> None:
    a, b = make((37,), dtype, 0), make((37,), dtype, 2)
    divisor = make((37,), dtype, 3, (1, 9))
    check(
        lambda a, b, d: (a + b, a * b, (a + b) * 3 > a, a // d, a % d, (a * 7) // d, a & b, a ^ b, a << 3, a >> 1),
        a, b, divisor,
    )  # fmt: skip


@pytest.mark.parametrize("source", DTYPES, ids=str)
def test_casts(source: torch.dtype) -> None:
    targets = [dtype for dtype in DTYPES if dtype is not source]
    check(lambda x: [x.to(target) for target in targets], make((41,), source, 1, (0, 100)))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_special_values(dtype: torch.dtype) -> None:
    x = make((64,), dtype)
    check(
        lambda x: (x > 0, x.isnan(), x.isinf(), x.maximum(x.flip(0)), x.clamp(-1, 1), x.relu(), x.sign(),
                   x.nan_to_num()),
        x,
    )  # fmt: skip


def test_equal_to_eager_bit_by_bit() -> None:
    """The formulas are eager's own."""
    x = to_device(torch.rand(1000) * 4 + 0.1)
    for function in (torch.exp, torch.log, torch.erf, torch.sin, torch.lgamma, torch.digamma, torch.special.i0e):
        assert_same_bits(compiled(function)(x), function(x), str(function))


@pytest.mark.once
def test_special_functions() -> None:
    check(
        lambda x: (torch.polygamma(2, x), torch.special.zeta(x + 2, x), torch.special.bessel_j0(x), torch.erfinv(x / 9),
                   torch.atan2(x, x + 1), torch.frexp(x), torch.hypot(x, x), torch.logit(x / 20), x**x),
        torch.rand(100) * 4 + 0.1, rtol=1e-4, atol=1e-5,
    )  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.float16, torch.uint8], ids=str)
def test_views_with_offsets(dtype: torch.dtype) -> None:
    """A quad of a view need not begin where four elements of memory do."""
    call = compiled(lambda x: x * 2 + 1)
    base = make((1000,), dtype, 1, (0, 9))
    moved = to_device(base)
    for offset in (0, 1, 2, 3, 5):
        assert_same(call(moved[offset : offset + 128]), base[offset : offset + 128] * 2 + 1, f"offset {offset}")


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bfloat16, torch.int8, torch.bool], ids=str)
@pytest.mark.parametrize("offset", [0, 1])
def test_in_place_inputs(dtype: torch.dtype, offset: int) -> None:
    """An input that is changed keeps what lies beside it."""

    def change(x: torch.Tensor) -> torch.Tensor:
        x.add_(x)
        return x * 1

    base = make((99,), dtype, 1, (0, 9))
    moved, expected = to_device(base), base.clone()
    result = compiled(change)(moved[offset : offset + 64])
    assert_same(result, change(expected[offset : offset + 64]))
    assert_same(moved, expected)


@pytest.mark.once
def test_more_operands_than_bindings() -> None:
    tensors = [torch.randn(32) for _ in range(100)]
    check(lambda *xs: sum(xs), *tensors, rtol=1e-5, atol=1e-4)


@pytest.mark.once
def test_numbers_of_the_cpu() -> None:
    check(lambda x, s: x * s, torch.randn(9), 2.5)
    call = compiled(lambda x, s: s * x + s)
    scalar = torch.tensor(1.5, dtype=torch.float64)
    x = torch.randn(9)
    assert_same(call(to_device(x), scalar), scalar * x + scalar)


def test_dynamic_shapes_do_not_compile_again() -> None:
    counter = torch._dynamo.testing.CompileCounterWithBackend("webgpu")
    torch._dynamo.reset()
    call = torch.compile(lambda x, w: F.gelu(x * w).sum(-1), backend=counter, dynamic=True)
    for rows, columns in ((4, 8), (5, 9), (16, 64), (3, 7)):
        x, w = torch.randn(rows, columns), torch.randn(columns)
        assert_same(call(to_device(x), to_device(w)), F.gelu(x * w).sum(-1), rtol=1e-5, atol=1e-5)
    assert counter.frame_count == 1


def test_only_cpu_tensors_are_an_error() -> None:
    with pytest.raises(Exception, match=r'call \.to\("webgpu"\)'):
        compiled(lambda x: x + 1)(torch.ones(3))


def test_plain_compile() -> None:
    torch._dynamo.reset()
    call = torch.compile(lambda x: F.silu(x) + 1)
    x = torch.randn(40)
    moved = to_device(x)
    assert_same(call(moved), F.silu(x) + 1)
    assert count(call, moved) == 1


def test_cpu_still_compiles() -> None:
    torch._dynamo.reset()
    x = torch.randn(64)
    torch.testing.assert_close(torch.compile(lambda x: F.gelu(x).sum())(x), F.gelu(x).sum())
