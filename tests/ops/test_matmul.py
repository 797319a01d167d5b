"""Products of matrices and vectors against the CPU: every kernel, layout and dtype, gradients, out=, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from tests.support import (
    DTYPES,
    FLOATS,
    INTS,
    assert_same,
    assert_same_error,
    assert_same_storage,
    name_of,
    on_device,
    outcome,
    run_on_device,
    to_device,
)

Tensor = torch.Tensor

# sums of a few hundred products in another order than the CPU's, which rounds some of its halves in between
CLOSE = {
    torch.float32: {"rtol": 1e-5, "atol": 5e-5},
    torch.float16: {"rtol": 5e-3, "atol": 5e-3},
    torch.bfloat16: {"rtol": 2e-2, "atol": 4e-2},
}


def values(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    if dtype.is_floating_point:
        return torch.randn(shape).mul(0.5).to(dtype)
    limits = torch.iinfo(dtype)
    return torch.randint(max(limits.min, -(2**62)), min(limits.max, 2**62), shape, dtype=torch.int64).to(dtype)


def same(actual: Tensor, expected: Tensor, message: str = "", **options: Any) -> None:
    assert_same(actual, expected, message, **CLOSE.get(expected.dtype, {}), **options)


# A matrix of each layout: along rows, along columns, rows that begin anywhere, every other column.
LAYOUTS: dict[str, Callable[[int, int, torch.dtype], Tensor]] = {
    "rows": lambda m, n, dtype: values((m, n), dtype),
    "columns": lambda m, n, dtype: values((n, m), dtype).t(),
    "shifted": lambda m, n, dtype: values((m, n + 3), dtype)[:, 1 : n + 1],
    "spread": lambda m, n, dtype: values((m, 2 * n), dtype)[:, ::2],
}

# Rows, columns and depth that reach each kernel, with edges and without.
SHAPES = {
    "tile": (5, 9, 7),
    "wide": (96, 128, 64),
    "wide, edges": (70, 101, 99),
    "sixteen rows": (12, 200, 300),
    "eight rows": (260, 5, 512),
    "vector": (1, 66, 100),
    "vector, edges": (65, 1, 131),
}
PAIRS = [(a, b) for a in ("rows", "columns") for b in ("rows", "columns")] + [("shifted", "spread")]


@pytest.mark.parametrize("shape", SHAPES)
def test_layouts(shape: str) -> None:
    rows, columns, depth = SHAPES[shape]
    for first, second in PAIRS if shape in ("tile", "wide") else PAIRS[1:5:3]:
        a, b = LAYOUTS[first](rows, depth, torch.float32), LAYOUTS[second](depth, columns, torch.float32)
        same(run_on_device(torch.mm, *to_device((a, b))), torch.mm(a, b), f"{first} @ {second}")


@pytest.mark.parametrize("dtype", FLOATS[1:], ids=name_of)
@pytest.mark.parametrize("shape", ("tile", "wide", "wide, edges", "vector"))
def test_halves(shape: str, dtype: torch.dtype) -> None:
    rows, columns, depth = SHAPES[shape]
    a, b, bias = values((rows, depth), dtype), values((columns, depth), dtype).t(), values((columns,), dtype)
    expected = torch.addmm(bias.float(), a.float(), b.float()).to(dtype)
    same(run_on_device(torch.addmm, *to_device((bias, a, b))), expected)


ADDED: dict[str, Callable[[int, int, torch.dtype], Tensor]] = {
    "a matrix": lambda rows, columns, dtype: values((rows, columns), dtype),
    "its transpose": lambda rows, columns, dtype: values((columns, rows), dtype).t(),
    "a row": lambda rows, columns, dtype: values((columns,), dtype),
    "a row that begins anywhere": lambda rows, columns, dtype: values((columns + 3,), dtype)[3:],
    "a column": lambda rows, columns, dtype: values((rows, 1), dtype),
    "a number": lambda rows, columns, dtype: values((1,), dtype),
}


@pytest.mark.parametrize("added", ADDED)
@pytest.mark.parametrize("shape", ("wide", "wide, edges", "sixteen rows", "eight rows"))
def test_what_is_added(shape: str, added: str) -> None:
    rows, columns, depth = SHAPES[shape]
    for dtype in FLOATS:
        a, b, c = values((rows, depth), dtype), values((depth, columns), dtype), ADDED[added](rows, columns, dtype)
        expected = torch.addmm(c.float(), a.float(), b.float(), alpha=0.5, beta=2).to(dtype)
        same(run_on_device(torch.addmm, *to_device((c, a, b)), alpha=0.5, beta=2), expected, f"{dtype}")


def test_what_is_added_lies_in_an_operand() -> None:
    both = values((64, 132), torch.float32)
    a, c, b = both[:, :128], both[:, 128:129], values((128, 96), torch.float32)
    device = to_device(both)
    actual = run_on_device(torch.addmm, device[:, 128:129], device[:, :128], to_device(b))
    same(actual, torch.addmm(c, a, b))


@pytest.mark.parametrize("dtype", INTS, ids=name_of)
def test_integers_wrap(dtype: torch.dtype) -> None:
    for rows, columns, depth in ((3, 5, 4), (1, 40, 33), (33, 34, 65)):
        a, b, c = values((rows, depth), dtype), values((depth, columns), dtype), values((rows, columns), dtype)
        same(run_on_device(torch.mm, *to_device((a, b))), torch.mm(a, b))
        expected = torch.addmm(c, a, b, alpha=3, beta=2)
        same(run_on_device(torch.addmm, *to_device((c, a, b)), alpha=3, beta=2), expected)


Op = tuple[Callable[..., Any], list[tuple[int, ...]]]

OPS: dict[str, Op] = {
    "mm": (torch.mm, [(5, 6), (6, 7)]),
    "addmm": (lambda c, a, b: torch.addmm(c, a, b, alpha=2, beta=3), [(5, 7), (5, 6), (6, 7)]),
    "addmm of a row": (torch.addmm, [(7,), (5, 6), (6, 7)]),
    "addmm of a column": (torch.addmm, [(5, 1), (5, 6), (6, 7)]),
    "bmm": (torch.bmm, [(3, 5, 6), (3, 6, 7)]),
    "bmm of one matrix": (lambda a, b: torch.bmm(a, b.expand(3, 6, 7)), [(3, 5, 6), (6, 7)]),
    "baddbmm": (lambda c, a, b: torch.baddbmm(c, a, b, alpha=2, beta=3), [(5, 1), (3, 5, 6), (3, 6, 7)]),
    "addbmm": (lambda c, a, b: torch.addbmm(c, a, b, alpha=2, beta=3), [(5, 7), (3, 5, 6), (3, 6, 7)]),
    "mv": (torch.mv, [(5, 6), (6,)]),
    "addmv": (lambda c, a, b: torch.addmv(c, a, b, alpha=2, beta=3), [(5,), (5, 6), (6,)]),
    "addmv of one": (torch.addmv, [(1,), (5, 6), (6,)]),
    "dot": (torch.dot, [(70,), (70,)]),
    "vdot": (torch.vdot, [(7,), (7,)]),
    "addr": (lambda c, a, b: torch.addr(c, a, b, alpha=2, beta=3), [(5, 6), (5,), (6,)]),
    "outer": (torch.outer, [(5,), (6,)]),
    "inner": (torch.inner, [(4, 6), (5, 6)]),
    "kron": (torch.kron, [(3, 4), (2, 5)]),
    "matmul of vectors": (torch.matmul, [(6,), (6,)]),
    "matmul of batches": (torch.matmul, [(2, 1, 5, 6), (3, 6, 7)]),
    "matmul with a vector": (torch.matmul, [(2, 3, 5, 6), (6,)]),
    "linear": (F.linear, [(2, 3, 6), (7, 6), (7,)]),
    "einsum": (lambda a, b: torch.einsum("bij,bkj->bik", a, b), [(3, 5, 6), (3, 7, 6)]),
    "tensordot": (lambda a, b: torch.tensordot(a, b, dims=([1, 0], [0, 1])), [(3, 4, 5), (4, 3, 6)]),
}


def arguments(op: str, dtype: torch.dtype) -> tuple[Callable[..., Any], list[Tensor]]:
    function, shapes = OPS[op]
    return function, [values(shape, dtype) for shape in shapes]


@pytest.mark.parametrize("op", OPS)
def test_ops(op: str) -> None:
    for dtype in (*FLOATS, torch.int64, torch.uint8):
        function, inputs = arguments(op, dtype)
        same(run_on_device(function, *to_device(inputs)), function(*inputs), f"{op} {dtype}")


FLOAT_OPS: dict[str, Op] = {
    "bilinear": (F.bilinear, [(4, 5), (4, 6), (3, 5, 6), (3,)]),
    "multi_dot": (lambda *x: torch.linalg.multi_dot(x), [(4, 5), (5, 6), (6, 3)]),
    "chain_matmul": (lambda *x: torch.chain_matmul(*x), [(4, 5), (5, 6), (6, 3)]),
    "relu of a product": (lambda c, a, b: torch._addmm_activation(c, a, b, beta=2), [(7,), (5, 6), (6, 7)]),
    "gelu of a product": (lambda c, a, b: torch._addmm_activation(c, a, b, use_gelu=True), [(7,), (5, 6), (6, 7)]),
    "relu alone": (lambda c, a, b: torch._addmm_activation(c, a, b, beta=0), [(7,), (5, 6), (6, 7)]),
}


@pytest.mark.parametrize("op", [*OPS, *FLOAT_OPS])
def test_gradients(op: str) -> None:
    function, shapes = (OPS | FLOAT_OPS)[op]
    host = [values(shape, torch.float32).requires_grad_() for shape in shapes]
    device = to_device([x.detach() for x in host])
    device = [x.requires_grad_() for x in device]
    wanted = function(*host)
    with on_device():
        result = function(*device)
    same(result, wanted.detach())
    if not wanted.requires_grad or op.startswith(("relu", "gelu")):
        return
    weight = torch.randn_like(wanted)
    gradients = torch.autograd.grad(wanted, host, weight)
    with on_device():
        actual = torch.autograd.grad(result, device, to_device(weight))
    for index, (one, other) in enumerate(zip(actual, gradients, strict=True)):
        same(one, other, f"gradient {index}", strides=False)


def test_long_sums() -> None:
    """Cut into parts: of a dot product, of a small matrix, with what is added, of every other element."""
    for length, step in ((1 << 14, 1), (20_001, 1), (16_390, 2)):
        for dtype in (torch.float32, torch.float16, torch.int64):
            a, b = (values((length * step,), dtype)[::step] for _ in range(2))
            wide = torch.int64 if dtype == torch.int64 else torch.float64
            expected = torch.dot(a.to(wide), b.to(wide)).to(dtype)
            result = run_on_device(torch.dot, *to_device((a, b)))
            assert_same(result, expected, rtol=2e-3 if dtype == torch.float16 else 1e-4, atol=1e-2)
    for rows, columns, depth in ((3, 20, 9001), (1, 30, 8192)):
        a, b, c = torch.randn(rows, depth), torch.randn(columns, depth).t(), torch.randn(columns)
        expected = torch.addmm(c.double(), a.double(), b.double(), alpha=0.5, beta=2).float()
        result = run_on_device(torch.addmm, *to_device((c, a, b)), alpha=0.5, beta=2)
        assert_same(result, expected, rtol=1e-5, atol=1e-4)
        assert_same(
            run_on_device(torch.mm, *to_device((a, b))), (a.double() @ b.double()).float(), rtol=1e-5, atol=1e-4
        )


def test_batches() -> None:
    """Strides of a batch, of one matrix for all, of a transposed batch, in a kernel of quads and in a small one."""
    for rows, columns, depth in ((40, 64, 68), (3, 5, 4)):
        a, b, c = (torch.randn(shape) for shape in ((4, rows, depth), (4, columns, depth), (4, rows, columns)))
        cases = (a, b.mT), (a[:1].expand_as(a), b.mT), (a, b[:1].expand_as(b).mT), (a[::2], b[1::2].mT)
        for index, (left, right) in enumerate(cases):
            added = c[: left.size(0)].mT.contiguous().mT
            expected = torch.baddbmm(added, left, right, alpha=0.5)
            same(run_on_device(torch.baddbmm, *to_device((added, left, right)), alpha=0.5), expected, f"{index}")


@pytest.mark.parametrize("dtype", (torch.float32, torch.float16, torch.int64, torch.int8), ids=name_of)
def test_in_place_and_out(dtype: torch.dtype) -> None:
    a, b = values((6, 5), dtype), values((5, 7), dtype)
    for target in (values((6, 7), dtype), values((7, 6), dtype).t(), values((6, 16), dtype)[:, 1:15:2]):
        host, device = target.clone(memory_format=torch.preserve_format), to_device(target)
        expected = host.float().addmm(a.float(), b.float()).to(dtype) if dtype.is_floating_point else host.addmm(a, b)
        with on_device() as results:
            results.append(device.addmm_(*to_device((a, b))))
        same(device, expected, strides=False)
        with on_device() as results:
            results.append(torch.mm(*to_device((a, b)), out=device))
        same(device, torch.mm(a, b), strides=False)
    # what lies beside the result stays
    host = torch.zeros((6, 16), dtype=dtype)
    device = to_device(host)
    view, there = host[:, 1:15:2], device[:, 1:15:2]
    small = [x.clamp(-3, 3) if dtype.is_floating_point else x % 3 for x in (a, b)]
    torch.mm(*small, out=view)
    torch.mm(*to_device(small), out=there)
    same(there, view)
    assert_same_storage(device * (device == 0), host * (host == 0))


@pytest.mark.parametrize("dtype", (torch.float32, torch.float16), ids=name_of)
def test_large_in_place_and_out(dtype: torch.dtype) -> None:
    for rows, columns, depth, layout in ((96, 128, 64, "rows"), (70, 101, 99, "columns")):
        a, b = values((rows, depth), dtype), values((columns, depth), dtype).t()
        c = LAYOUTS[layout](rows, columns, dtype)
        device = to_device(c)
        with on_device() as results:
            results.append(device.addmm_(*to_device((a, b)), alpha=0.5, beta=2))
        same(device, torch.addmm(c.float(), a.float(), b.float(), alpha=0.5, beta=2).to(dtype), strides=False)


def test_many_batches() -> None:
    """More tiles than a grid has workgroups."""
    a, b = torch.randn(66_000, 8, 4), torch.randn(66_000, 4, 8)
    same(run_on_device(torch.bmm, *to_device((a, b))), torch.bmm(a, b))


def test_out_shares_memory_with_an_operand() -> None:
    """Where the CPU itself may go wrong: what is right is what comes without out=."""
    x, y = torch.randn(6, 6), torch.randn(6, 6)
    calls = (
        (lambda p, q: torch.mm(p, q, out=p), lambda p, q: p @ q),
        (lambda p, q: torch.addmm(p, p, p, out=p), lambda p, q: p + p @ p),
        (lambda p, q: torch.addmm(p, p, q.t()), lambda p, q: p + p @ q.t()),
        (lambda p, q: p.addmm_(p, p.t()), lambda p, q: p + p @ p.t()),
        (lambda p, q: torch.mv(p, q[0], out=q[0]), lambda p, q: p @ q[0]),
        (lambda p, q: torch.baddbmm(p[None], p[None], q[None]), lambda p, q: (p + p @ q)[None]),
    )
    for call, expected in calls:
        same(run_on_device(call, *to_device((x, y))), expected(x, y))


def test_nothing() -> None:
    nan = float("nan")
    for call in (
        lambda to: torch.mm(to(torch.ones(3, 0)), to(torch.ones(0, 2))),
        lambda to: torch.mm(to(torch.ones(0, 3)), to(torch.ones(3, 2))),
        lambda to: torch.bmm(to(torch.ones(2, 3, 0)), to(torch.ones(2, 0, 4))),
        lambda to: torch.bmm(to(torch.ones(0, 3, 4)), to(torch.ones(0, 4, 4))),
        lambda to: torch.addmm(to(torch.ones(2)), to(torch.ones(3, 0)), to(torch.ones(0, 2)), beta=3),
        lambda to: torch.addmm(to(torch.full((3, 2), nan)), to(torch.ones(3, 0)), to(torch.ones(0, 2)), beta=0),
        lambda to: torch.addmm(to(torch.full((3, 2), nan)), to(torch.ones(3, 4)), to(torch.ones(4, 2)), beta=0),
        lambda to: torch.addmv(to(torch.full((3,), nan)), to(torch.ones(3, 4)), to(torch.ones(4)), beta=0),
        lambda to: torch.addr(to(torch.full((3, 4), nan)), to(torch.ones(3)), to(torch.ones(4)), beta=0),
        lambda to: torch.baddbmm(to(torch.full((2,), nan)), to(torch.ones(1, 3, 4)), to(torch.ones(1, 4, 2)), beta=0),
        lambda to: torch.addbmm(to(torch.ones(3, 2)), to(torch.ones(0, 3, 4)), to(torch.ones(0, 4, 2)), beta=2),
        lambda to: torch.dot(to(torch.ones(0)), to(torch.ones(0))),
        lambda to: torch.mv(to(torch.ones(3, 0)), to(torch.ones(0))),
        lambda to: torch.addmv(to(torch.ones(3)), to(torch.ones(3, 0)), to(torch.ones(0)), beta=2),
        lambda to: torch.mm(to(torch.ones(3, 0, dtype=torch.bool)), to(torch.ones(0, 2, dtype=torch.bool))),
    ):
        same(run_on_device(call, to_device, dispatches=None), call(lambda x: x))


def test_not_a_number_stays_in_its_row() -> None:
    """Lines beyond the edge repeat the last one, steps beyond the end are zeros: nothing leaks."""
    for rows, columns, depth in ((70, 101, 99), (5, 9, 7), (9, 1, 515)):
        a, b = torch.randn(rows, depth), torch.randn(depth, columns)
        a[-1, -1], a[2, 0], b[1, -1] = float("nan"), float("inf"), float("inf")
        same(run_on_device(torch.mm, *to_device((a, b))), torch.mm(a, b))


def test_bool_outer() -> None:
    c, a, b = (torch.rand(shape) > 0.5 for shape in ((4, 5), (4,), (5,)))
    assert_same(run_on_device(torch.addr, *to_device((c, a, b))), torch.addr(c, a, b))
    assert_same(run_on_device(torch.outer, *to_device((a, b))), torch.outer(a, b))


def test_int8_to_int32() -> None:
    a, b = values((17, 40), torch.int8), values((40, 24), torch.int8)
    assert_same(run_on_device(torch._int_mm, *to_device((a, b))), torch._int_mm(a, b))


def ones(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.ones(shape, dtype=dtype)


HALF, LONG, BYTE, BOOL = torch.float16, torch.int64, torch.int8, torch.bool
ERRORS: tuple[Callable[[Callable[..., Tensor]], Any], ...] = (
    *(
        lambda to, dtype=dtype: torch.mm(to(ones(2, 3, dtype=dtype)), to(ones(3, 2, dtype=DTYPES[0])))
        for dtype in (HALF, LONG)
    ),
    lambda to: torch.mm(to(ones(2, 3, dtype=BOOL)), to(ones(3, 2, dtype=BOOL))),
    lambda to: torch.bmm(to(ones(2, 2, 3, dtype=BOOL)), to(ones(2, 3, 2, dtype=BOOL))),
    lambda to: torch.bmm(to(ones(2, 20, 30, dtype=BOOL)), to(ones(2, 30, 20, dtype=BOOL))),
    lambda to: torch.baddbmm(to(ones(2, dtype=BOOL)), to(ones(2, 2, 3, dtype=BOOL)), to(ones(2, 3, 2, dtype=BOOL))),
    lambda to: torch.addbmm(to(ones(2, dtype=BOOL)), to(ones(2, 2, 3, dtype=BOOL)), to(ones(2, 3, 2, dtype=BOOL))),
    lambda to: torch.mv(to(ones(2, 3, dtype=BOOL)), to(ones(3, dtype=BOOL))),
    lambda to: torch.dot(to(ones(3, dtype=BOOL)), to(ones(3, dtype=BOOL))),
    lambda to: torch.mm(to(ones(2, 3)), to(ones(4, 2))),
    lambda to: torch.mm(to(ones(2, 3)), to(ones(3))),
    lambda to: torch.bmm(to(ones(2, 2, 3)), to(ones(2, 3, 2, dtype=HALF))),
    lambda to: torch.bmm(to(ones(2, 2, 3)), to(ones(3, 3, 2))),
    lambda to: torch.addmm(to(ones(2, 2, dtype=HALF)), to(ones(2, 3)), to(ones(3, 2))),
    lambda to: torch.addmm(to(ones(3, 3)), to(ones(2, 3)), to(ones(3, 2))),
    lambda to: torch.addmm(*(to(ones(2, 2, dtype=BYTE)) for _ in range(3)), alpha=300),
    lambda to: torch.baddbmm(to(ones(2, 2, 2, dtype=HALF)), to(ones(2, 2, 3)), to(ones(2, 3, 2))),
    lambda to: torch.addbmm(to(ones(2, 2)), to(ones(2, 2, 3)), to(ones(3, 3, 2))),
    lambda to: torch.addbmm(to(ones(2, 2)), to(ones(2, 2, 3)), to(ones(2, 4, 2))),
    lambda to: torch.addbmm(to(ones(2, 3)), to(ones(2, 2, 3)), to(ones(2, 3, 2))),
    lambda to: torch.addbmm(to(ones(2, 2)), to(ones(2, 2, 3)), to(ones(2, 3, 2)), out=to(ones(2, 2, dtype=HALF))),
    lambda to: torch.mv(to(ones(2, 3)), to(ones(4))),
    lambda to: torch.mv(to(ones(2, 3)), to(ones(3, dtype=HALF))),
    lambda to: torch.addmv(to(ones(3)), to(ones(2, 3)), to(ones(3))),
    lambda to: to(ones(1)).addmv_(to(ones(2, 3)), to(ones(3))),
    lambda to: torch.dot(to(ones(3)), to(ones(4))),
    lambda to: torch.dot(to(ones(3)), to(ones(3, dtype=HALF))),
    lambda to: torch.dot(to(ones(3, 1)), to(ones(3))),
    lambda to: torch.addr(to(ones(2, 3, dtype=LONG)), to(ones(2, dtype=LONG)), to(ones(3, dtype=LONG)), beta=0.5),
    lambda to: to(ones(3)).addr_(to(ones(2)), to(ones(3))),
    lambda to: torch.outer(to(ones(2, 1)), to(ones(3))),
    lambda to: torch._int_mm(to(ones(3, 2, dtype=BYTE)), to(ones(3, 5, dtype=BYTE))),
    lambda to: torch._int_mm(to(ones(3, 2, dtype=BYTE)), to(ones(2, 5))),
)


@pytest.mark.parametrize("index", range(len(ERRORS)))
def test_errors(index: int) -> None:
    _, wanted = outcome(ERRORS[index], lambda x: x)
    _, error = outcome(ERRORS[index], to_device)
    assert wanted is not None
    assert_same_error(error, wanted)
