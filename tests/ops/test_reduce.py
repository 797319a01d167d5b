"""Reductions against the CPU: every op, every dtype, the layouts that choose another kernel, the errors."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from tests.support import (
    DTYPES,
    FLOATS,
    assert_same,
    assert_same_error,
    assert_same_storage,
    make,
    name_of,
    on_device,
    outcome,
    run_on_device,
    to_device,
)

INF = float("inf")
CLOSE = {"rtol": 1e-5, "atol": 1e-5}
HALF = {"rtol": 3e-2, "atol": 1e-2}  # the CPU multiplies and sums float16 and bfloat16 in steps of their own precision


@dataclass(frozen=True)
class Op:
    """A row: the op over a dimension, and over all of them if it can; `exact` where nothing is rounded."""

    name: str
    dim: Callable[..., Any]
    all: Callable[..., Any]
    exact: bool = False
    dtypes: tuple[torch.dtype, ...] = DTYPES


def norm(order: float) -> Op:
    return Op(
        f"norm_{order}",
        lambda x, dim: torch.linalg.vector_norm(x, order, dim),
        lambda x: torch.linalg.vector_norm(x, order),
        dtypes=FLOATS,
    )


OPS = (
    Op("sum", torch.sum, torch.sum),
    Op("nansum", torch.nansum, torch.nansum),
    Op("mean", torch.mean, torch.mean, dtypes=FLOATS),
    Op("prod", torch.prod, torch.prod),
    Op("amax", torch.amax, torch.amax, exact=True),
    Op("amin", torch.amin, torch.amin, exact=True),
    Op("aminmax", lambda x, dim: tuple(torch.aminmax(x, dim=dim)), lambda x: tuple(torch.aminmax(x)), exact=True),
    Op("max", lambda x, dim: tuple(torch.max(x, dim)), torch.max, exact=True),
    Op("min", lambda x, dim: tuple(torch.min(x, dim)), torch.min, exact=True),
    Op("argmax", torch.argmax, torch.argmax, exact=True, dtypes=DTYPES[:-1]),
    Op("argmin", torch.argmin, torch.argmin, exact=True, dtypes=DTYPES[:-1]),
    Op("any", torch.any, torch.any, exact=True),
    Op("all", torch.all, torch.all, exact=True),
    Op("count_nonzero", torch.count_nonzero, torch.count_nonzero, exact=True),
    Op("var", torch.var, torch.var, dtypes=FLOATS),
    Op("std", torch.std, torch.std, dtypes=FLOATS),
    Op("var_mean", torch.var_mean, torch.var_mean, dtypes=FLOATS),
    Op("std_mean", torch.std_mean, torch.std_mean, dtypes=FLOATS),
    *(norm(order) for order in (0, 1, 2, 3, 2.5, -1.5, INF, -INF)),
)
BY_NAME = {op.name: op for op in OPS}


def values(op: Op, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """All special values where nothing is rounded; otherwise such that sums and products stay in range."""
    if op.exact or not dtype.is_floating_point:
        return make(shape, dtype, seed=3)
    return make(shape, dtype, seed=3, domain=(0.5, 1.5))


def zero_sign(results: Any) -> Any:
    """Which of both zeros an extreme is, the CPU leaves open."""
    if isinstance(results, tuple):
        return tuple(zero_sign(x) for x in results)
    return results + 0 if results.is_floating_point() else results


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_dtypes(dtype: torch.dtype) -> None:
    for op in OPS:
        if dtype not in op.dtypes:
            continue
        tolerance: dict[str, Any] = {"exact": True} if op.exact else HALF if dtype in FLOATS[1:] else CLOSE
        # every kernel in float32, in the others the one that loads four at a time: compiling takes most of the time
        full = dtype == torch.float32
        for shape in ((3, 5), (4, 64)) if full else ((4, 64),):
            x = values(op, shape, dtype)
            for call, args in ((op.dim, (0,)), (op.dim, (1,)), (op.all, ())) if full else ((op.dim, (1,)),):
                actual = run_on_device(call, to_device(x), *args)
                assert_same(zero_sign(actual), zero_sign(call(x, *args)), f"{op.name} {shape} {args}", **tolerance)


def layouts() -> Iterator[tuple[str, torch.Tensor, int | tuple[int, ...] | None]]:
    """Shapes and strides for each kernel: quads along and across memory, with edges, lanes, groups, parts."""
    x = torch.rand(70_001)
    yield "parts of a long row", x[:70_000], 0
    yield "parts that begin and end within a quad", x[1:], 0
    yield "every second", x[::2], 0
    yield "long rows", x[:50_000].view(10, 5000), 1
    yield "odd rows", x[: 7 * 1001].view(7, 1001), 1
    yield "columns", x[: 300 * 36].view(300, 36), 0
    yield "many columns", x[: 20 * 1000].view(20, 1000), 0
    yield "parts of few columns", x[:40_000].view(10_000, 4), 0
    yield "odd columns", x[: 300 * 35].view(300, 35), 0
    yield "a column in the middle", x[: 6 * 40 * 16].view(6, 40, 16), 1
    yield "transposed", x[: 40 * 64].view(40, 64).t(), 1
    yield "two dimensions", x[: 6 * 40 * 16].view(6, 40, 16), (0, 2)
    yield "two odd dimensions", x[: 6 * 40 * 15].view(6, 40, 15), (0, 2)
    yield "expanded", x[:64].expand(40, 64), 0
    yield "short rows", x[:999].view(333, 3), 1
    yield "a single element", x[:1], 0
    yield "a row of one", x[:40].view(40, 1), 1


@pytest.mark.parametrize("layout", list(layouts()), ids=lambda layout: layout[0].replace(" ", "_"))
def test_layouts(layout: tuple[str, torch.Tensor, Any]) -> None:
    _, x, dim = layout
    for dtype in (torch.float32, torch.float16, torch.int64, torch.uint8):
        y = (x if dtype.is_floating_point else x * 200).to(dtype) if dtype != x.dtype else x
        # the sum of many float16 is too large for one
        wide = torch.float32 if dtype == torch.float16 else None
        actual = run_on_device(torch.sum, to_device(y), dim, dtype=wide)
        assert_same(actual, torch.sum(y, dim, dtype=wide), str(dtype), rtol=2e-6, atol=1e-5)
    assert_same(run_on_device(torch.amax, to_device(x), dim), torch.amax(x, dim), "amax", exact=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        actual, expected = run_on_device(torch.var_mean, to_device(x), dim), torch.var_mean(x, dim)
    assert_same(actual, expected, "var_mean", **CLOSE)
    if not isinstance(dim, tuple):
        assert_same(tuple(run_on_device(torch.max, to_device(x), dim)), tuple(torch.max(x, dim)), "max", exact=True)


def test_keepdim_and_lists_of_dimensions() -> None:
    x = torch.rand(3, 4, 5, 6)
    for dims in ((0,), (-1, 1), (0, 1, 2, 3), [], None):
        for keepdim in (False, True):
            for call in (torch.sum, torch.nansum, torch.mean, torch.amax, torch.var, torch.linalg.vector_norm):
                kwargs = {} if dims is None and call is torch.amax else {"dim": dims}
                actual = run_on_device(call, to_device(x), keepdim=keepdim, **kwargs)
                assert_same(actual, call(x, keepdim=keepdim, **kwargs), f"{call.__name__} {dims} {keepdim}")


def test_dtype_argument() -> None:
    for x in (torch.rand(40, 33), torch.randint(-2, 3, (40, 33)), torch.rand(40, 33) > 0.5):
        for dtype in (torch.float32, torch.float16, torch.int64, torch.int32, torch.uint8):
            for call in (torch.sum, torch.nansum, torch.prod):
                y = x / 8 + 1 if call is torch.prod and x.dtype == torch.float32 else x
                actual = run_on_device(call, to_device(y), 1, dtype=dtype)
                tolerance = HALF if dtype == torch.float16 else CLOSE
                assert_same(actual, call(y, 1, dtype=dtype), f"{call.__name__} {x.dtype} {dtype}", **tolerance)


def test_empty() -> None:
    for shape in ((0,), (3, 0), (0, 3)):
        x = torch.empty(shape)
        for name in ("sum", "mean", "prod", "any", "all", "var", "norm_2", "norm_0", "nansum", "count_nonzero", "max"):
            for dim in range(len(shape)):
                op = BY_NAME[name]
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    actual, error = outcome(op.dim, to_device(x), dim)
                    expected, wanted = outcome(op.dim, x, dim)
                assert_same_error(error, wanted, f"{name} {shape} {dim}")
                if wanted is None:
                    assert_same(actual, expected, f"{name} {shape} {dim}")


def test_first_index_of_ties_and_nan() -> None:
    x = torch.randint(0, 3, (50, 400)).float()
    x[::3, 123] = float("nan")
    x[::6, 77] = float("nan")
    for y in (x, x.t(), x[:, ::3], x.half()):
        for dim in (0, 1):
            for call in (torch.argmax, torch.argmin):
                assert_same(run_on_device(call, to_device(y), dim), call(y, dim), exact=True)
            for call in (torch.max, torch.min):
                assert_same(tuple(run_on_device(call, to_device(y), dim)), tuple(call(y, dim)), exact=True)


def test_accuracy_of_a_million() -> None:
    """No worse than the CPU's, or within two units: a sum in pairs of a million promises log2(n) / 2, which is ten."""
    x = torch.rand(1_000_003, generator=torch.Generator().manual_seed(0))
    y = x - 0.25
    for z in (x, y, x[: 1000 * 1000].view(1000, 1000).t()):
        exact, device = z.double(), to_device(z)
        scale = 2 * exact.abs().sum().item() * torch.finfo(torch.float32).eps
        for call in (torch.sum, lambda t: t.mean() * t.numel(), lambda t: torch.linalg.vector_norm(t, 1)):
            wanted = call(exact).item()
            assert abs(run_on_device(call, device).item() - wanted) <= max(scale, abs(call(z).item() - wanted))
        for call in (torch.var, torch.linalg.vector_norm):
            assert run_on_device(call, device).item() == pytest.approx(call(exact).item(), rel=1e-6)


def test_out() -> None:
    x = torch.rand(30, 40)[:, 1:]
    device = to_device(x)
    for out in (torch.empty(0), torch.empty(60)[::2]):
        on = to_device(out)
        with on_device() as results:
            results.append(torch.sum(device, 1, out=on))
        assert_same(on, torch.sum(x, 1, out=out))
    values, indices = torch.empty(0), torch.empty(0, dtype=torch.int64)
    on = to_device((values, indices))
    torch.max(device, 1, out=on)
    assert_same(on, tuple(torch.max(x, 1, out=(values, indices))))


def test_out_within_the_input() -> None:
    """Both results, of different strides, in the storage of the input."""
    storage = torch.rand(200)
    rows, low, high = storage[:128].view(4, 32), storage[130:138:2], storage[140:144]
    on = to_device((rows, low, high))
    with on_device() as results:
        results.append(torch.aminmax(on[0], dim=1, out=on[1:]))
    torch.aminmax(rows, dim=1, out=(low, high))
    assert_same_storage(on[1], low)


def test_prod_and_sum_of_integers_wrap() -> None:
    x = torch.randint(-(2**31), 2**31, (5, 40))
    for call in (torch.sum, torch.prod):
        assert_same(run_on_device(call, to_device(x), 1), call(x, 1), exact=True)
        assert_same(run_on_device(call, to_device(x), 1, dtype=torch.int32), call(x, 1, dtype=torch.int32), exact=True)


def test_spread_without_freedom() -> None:
    x = torch.rand(3, 1)
    x[1] = INF
    for correction in (0, 1, 2, 0.5):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            expected = torch.var(x, 1, correction=correction)
            wanted = [str(w.message).partition(" (Triggered")[0] for w in said]
            said.clear()
            actual = run_on_device(torch.var, to_device(x), 1, correction=correction)
            assert [str(w.message).partition(" (Triggered")[0] for w in said] == wanted
        assert_same(actual, expected, f"correction {correction}")


def test_norms_of_special_values() -> None:
    x = torch.tensor([[0.0, -0.0, 1e-40], [INF, -INF, 1.0], [1e30, 1e30, 1e-30], [3.0, 4.0, float("nan")]])
    for order in (0, 1, 3, 0.5, -1, -2.5, INF, -INF):
        actual = run_on_device(torch.linalg.vector_norm, to_device(x), order, 1)
        assert_same(actual, torch.linalg.vector_norm(x, order, 1), f"order {order}", **CLOSE)


def test_renorm_trace_dot() -> None:
    x = torch.randn(5, 6, 7)
    for p in (0.5, 1, 2, 3, INF):
        for dim in (0, -1):
            assert_same(run_on_device(torch.renorm, to_device(x), p, dim, 2.0), torch.renorm(x, p, dim, 2.0), **CLOSE)
    device = to_device(x)
    assert_same(run_on_device(device.renorm_, 2, 1, 1.0), x.clone().renorm_(2, 1, 1.0), **CLOSE)
    for dtype in DTYPES[:-1]:
        a, b = (make((33,), dtype, seed, domain=(0, 3)) for seed in (1, 2))
        tolerance = HALF if dtype in FLOATS[1:] else CLOSE
        assert_same(run_on_device(torch.dot, *to_device((a, b))), torch.dot(a, b), str(dtype), **tolerance)
        assert_same(run_on_device(torch.vdot, *to_device((a, b))), torch.vdot(a, b), str(dtype), **tolerance)
        assert_same(
            run_on_device(torch.trace, to_device(a[:30].view(5, 6))), torch.trace(a[:30].view(5, 6)), **tolerance
        )


ERRORS: tuple[Callable[[Callable[[torch.Tensor], torch.Tensor]], Any], ...] = (
    lambda to: to(torch.empty(0)).max(),
    lambda to: to(torch.empty(0, 3)).max(0),
    lambda to: to(torch.empty(0, 3)).aminmax(dim=0),
    lambda to: to(torch.empty(0)).aminmax(),
    lambda to: to(torch.empty(0)).argmax(),
    lambda to: to(torch.empty(0, 3)).amax(0),
    lambda to: to(torch.rand(3)).sum(1),
    lambda to: to(torch.rand(3, 3)).sum((0, 0)),
    lambda to: to(torch.ones(3, dtype=torch.int64)).mean(),
    lambda to: to(torch.ones(3, dtype=torch.int64)).var(),
    lambda to: to(torch.ones(3, dtype=torch.int64)).norm(),
    lambda to: torch.linalg.vector_norm(to(torch.rand(3)), 2, dtype=torch.float16),
    lambda to: torch.linalg.vector_norm(to(torch.empty(0)), INF),
    lambda to: torch.trace(to(torch.rand(3))),
    lambda to: torch.dot(to(torch.rand(3)), to(torch.rand(4))),
    lambda to: torch.dot(to(torch.rand(3, 3)), to(torch.rand(3))),
    lambda to: torch.dot(to(torch.rand(3)), to(torch.rand(3)).half()),
    lambda to: torch.renorm(to(torch.rand(3, 3)), -1, 0, 1.0),
    lambda to: torch.renorm(to(torch.rand(3)), 2, 0, 1.0),
    lambda to: torch.nansum(to(torch.rand(3)), 0, dtype=torch.int32, out=to(torch.empty(0))),
)


@pytest.mark.parametrize("index", range(len(ERRORS)))
def test_errors(index: int) -> None:
    _, wanted = outcome(ERRORS[index], lambda x: x)
    _, error = outcome(ERRORS[index], to_device)
    assert wanted is not None
    assert_same_error(error, wanted)
