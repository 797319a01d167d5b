"""Pooling of one to three dimensions: maximum, average, adaptive, fractional, unpooling, and their gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from tests.support import FLOATS, assert_same, assert_same_error, make, name_of, outcome, run_on_device, to_device

Function = Callable[..., Any]


@dataclass(frozen=True)
class Pool:
    name: str
    run: Function
    shapes: tuple[tuple[int, ...], ...]
    halves: bool = True


def max_pool(dims: int, *args: Any, **kwargs: Any) -> Function:
    function = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[dims - 1]
    return lambda x: function(x, *args, return_indices=True, **kwargs)


def adaptive_max(dims: int, size: Any) -> Function:
    function = (F.adaptive_max_pool1d, F.adaptive_max_pool2d, F.adaptive_max_pool3d)[dims - 1]
    return lambda x: function(x, size, return_indices=True)


def fractional(dims: int, kernel: Any, size: Any) -> Function:
    function = F.fractional_max_pool2d if dims == 2 else F.fractional_max_pool3d

    def run(x: torch.Tensor) -> Any:
        batch = x.shape[0] if x.dim() == dims + 2 else 1
        samples = make((batch, x.shape[-dims - 1], dims), torch.float32, 5, (0, 0.99)).to(x.device, x.dtype)
        return function(x, kernel, output_size=size, return_indices=True, _random_samples=samples)

    return run


POOLS = (
    Pool("max1d", max_pool(1, 3, 2, 1), ((2, 3, 11), (3, 8))),
    Pool("max1d dilated", max_pool(1, 2, 1, 1, 3), ((2, 3, 11),)),
    Pool("max2d", max_pool(2, 3, 2, 1), ((2, 3, 9, 12), (3, 8, 8), (1, 1, 5, 5))),
    Pool("max2d ceil", max_pool(2, (3, 2), (2, 3), (1, 0), ceil_mode=True), ((2, 3, 8, 9),)),
    Pool("max2d dilated", max_pool(2, (2, 3), 2, 1, (3, 2)), ((2, 2, 9, 12),)),
    Pool("max2d tall", max_pool(2, (5, 1), 1, (2, 0), (2, 1)), ((2, 2, 12, 8),)),
    Pool("max3d", max_pool(3, 2, ceil_mode=True), ((2, 3, 5, 7, 9), (2, 4, 4, 4))),
    Pool("max3d dilated", max_pool(3, (2, 3, 2), (1, 2, 1), (1, 1, 0), (2, 1, 3)), ((1, 2, 5, 7, 9),)),
    Pool("avg1d", lambda x: F.avg_pool1d(x, 3, 2, 1), ((2, 3, 11), (3, 8))),
    Pool("avg2d", lambda x: F.avg_pool2d(x, 3, 2, 1), ((2, 3, 9, 12), (3, 8, 8))),
    Pool("avg2d ceil", lambda x: F.avg_pool2d(x, (3, 2), (2, 3), (1, 1), True), ((2, 3, 8, 9),)),
    Pool("avg2d unpadded", lambda x: F.avg_pool2d(x, 3, 2, 1, True, False), ((2, 3, 8, 9),)),
    Pool("avg2d divisor", lambda x: F.avg_pool2d(x, 2, 1, 1, False, True, -3), ((2, 3, 8, 9),)),
    Pool(
        "avg3d", lambda x: F.avg_pool3d(x, (2, 3, 2), 2, (1, 1, 0), True, False), ((2, 3, 5, 7, 9), (2, 4, 4, 4)), False
    ),
    Pool("avg3d divisor", lambda x: F.avg_pool3d(x, 2, 1, divisor_override=5), ((2, 3, 5, 4, 3),), False),
    Pool("lp2d", lambda x: F.lp_pool2d(x.abs() + 1, 3.0, 2), ((2, 3, 6, 8),)),
    Pool("adaptive avg1d", lambda x: F.adaptive_avg_pool1d(x, 5), ((2, 3, 11), (3, 3))),
    Pool("adaptive avg2d", lambda x: F.adaptive_avg_pool2d(x, (3, 5)), ((2, 3, 8, 9), (3, 2, 3))),
    Pool("adaptive avg2d one", lambda x: F.adaptive_avg_pool2d(x, 1), ((2, 3, 8, 9),)),
    Pool("adaptive avg3d", lambda x: F.adaptive_avg_pool3d(x, (2, 3, 4)), ((2, 3, 5, 3, 9), (2, 4, 4, 4))),
    Pool("adaptive max1d", adaptive_max(1, 4), ((2, 3, 11), (3, 8))),
    Pool("adaptive max2d", adaptive_max(2, (3, 5)), ((2, 3, 8, 9), (3, 2, 3))),
    Pool("adaptive max3d", adaptive_max(3, (2, 3, 4)), ((2, 3, 5, 3, 9), (2, 4, 4, 4))),
    Pool("fractional max2d", fractional(2, (2, 3), (4, 5)), ((2, 3, 9, 13), (3, 9, 9))),
    Pool("fractional max2d narrow", fractional(2, 3, (1, 4)), ((2, 3, 3, 6),)),
    Pool("fractional max3d", fractional(3, (2, 1, 3), (4, 5, 2)), ((2, 3, 9, 7, 13), (3, 9, 9, 9))),
)


def close_to(dtype: torch.dtype) -> dict[str, float]:
    """The CPU rounds some sums of halves at each step; maxima are compared by their indices."""
    return {} if dtype == torch.float32 else {"rtol": 4 * torch.finfo(dtype).eps, "atol": 4 * torch.finfo(dtype).eps}


def compare(function: Function, x: torch.Tensor, message: str, **close: float) -> None:
    """The result and, for floats, the gradient of its first tensor."""
    here, there = x.detach(), to_device(x.detach())
    if x.is_floating_point():
        here, there = here.requires_grad_(), there.requires_grad_()
    expected, actual = function(here), run_on_device(function, there)
    assert_same(actual, expected, message, **close)
    if not x.is_floating_point():
        return
    one, other = (y[0] if isinstance(y, tuple) else y for y in (actual, expected))
    weights = torch.empty_like(other).copy_(make(tuple(other.shape), torch.float32, 3, (-1, 1)))
    other.backward(weights)
    run_on_device(one.backward, to_device(weights))
    # sums of a few rounded gradients
    slack = {torch.float16: 4e-3, torch.bfloat16: 3e-2}.get(x.dtype, 1e-5)
    assert_same(there.grad, here.grad, f"{message}: gradient", rtol=slack, atol=slack)


@pytest.mark.parametrize("pool", POOLS, ids=lambda pool: pool.name)
def test_against_the_cpu(pool: Pool) -> None:
    for shape in pool.shapes:
        for dtype in FLOATS if pool.halves else FLOATS[:1]:
            message = f"{pool.name} {shape} {name_of(dtype)}"
            compare(pool.run, make(shape, dtype, 1, (-4, 4)), message, **close_to(dtype))


@pytest.mark.parametrize("pool", POOLS, ids=lambda pool: pool.name)
def test_strides(pool: Pool) -> None:
    shape = pool.shapes[0]
    x = make((*shape[:-1], shape[-1] + 3), torch.float32, 2, (-4, 4))
    compare(pool.run, x[..., 2:-1], f"{pool.name} offset")
    compare(
        pool.run, make(shape, torch.float32, 3, (-4, 4)).transpose(-1, -2).contiguous().transpose(-1, -2), "columns"
    )
    if len(shape) > 3:
        last = torch.channels_last if len(shape) == 4 else torch.channels_last_3d
        for dtype in FLOATS if pool.halves else FLOATS[:1]:
            x = make(shape, dtype, 4, (-4, 4)).to(memory_format=last)
            compare(pool.run, x, f"{pool.name} channels last {name_of(dtype)}", **close_to(dtype))


@pytest.mark.parametrize("dtype", (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8), ids=name_of)
def test_integers(dtype: torch.dtype) -> None:
    for function, shape in ((max_pool(2, 3, 2, 1), (2, 3, 7, 8)), (max_pool(3, 2, 1), (2, 3, 4, 4, 5))):
        compare(function, make(shape, dtype), f"max_pool {name_of(dtype)}")
    if dtype == torch.int64:
        compare(lambda x: F.avg_pool2d(x, 3, 2, 1), make((2, 3, 7, 8), dtype, 1), "avg_pool2d")
        compare(lambda x: F.avg_pool3d(x, 2, divisor_override=-3), make((2, 3, 4, 4, 5), dtype, 1), "avg_pool3d")


@pytest.mark.parametrize("width", (8, 10))
def test_nan_infinities_and_ties(width: int) -> None:
    x = make((2, 3, 8, width), torch.float32)
    x[0, 0, 2:5, 1:4] = float("nan")
    x[0, 1] = float("-inf")
    x[0, 2, ::2] = 0.0
    x[0, 2, 1::2] = -0.0
    x[1, 0, 3, 3] = float("inf")
    x[1, 1] = 2.0
    for function in (max_pool(2, 3, 2, 1), max_pool(2, 2, 1, 0, 2), adaptive_max(2, 5), fractional(2, 2, 3)):
        expected, actual = function(x), run_on_device(function, to_device(x))
        assert_same(actual, expected, "values and indices", exact=True)


def test_large_rows() -> None:
    for function in (max_pool(1, 7, 3, 2), adaptive_max(1, 13), lambda x: F.adaptive_avg_pool1d(x, 1000)):
        compare(function, make((1, 2, 50_001), torch.float32, 1, (-4, 4)), "long rows", rtol=1e-5, atol=1e-5)


def test_out() -> None:
    x = make((2, 3, 8, 8), torch.float32, 1, (-4, 4))
    args = ([3, 3], [2, 2], [1, 1], [1, 1], False)
    expected = torch.ops.aten.max_pool2d_with_indices(x, *args)
    for shape in ((0,), (2, 3, 4, 4)):
        out = torch.zeros(shape, device="webgpu"), torch.zeros(shape, dtype=torch.int64, device="webgpu")
        run_on_device(torch.ops.aten.max_pool2d_with_indices.out, to_device(x), *args, out=out[0], indices=out[1])
        assert_same(out, expected, "out")
    wide = (
        torch.zeros(2, 3, 4, 8, device="webgpu")[..., ::2],
        torch.zeros(2, 3, 8, 4, dtype=torch.int64, device="webgpu"),
    )
    run_on_device(
        torch.ops.aten.max_pool2d_with_indices.out, to_device(x), *args, out=wide[0], indices=wide[1][:, :, ::2]
    )
    assert_same(wide[0], expected[0], "strided out", strides=False)
    assert_same(wide[1][:, :, ::2], expected[1], "strided indices", strides=False)


@pytest.mark.parametrize("dims", (1, 2, 3))
def test_unpool(dims: int) -> None:
    pool, unpool = max_pool(dims, 2), (F.max_unpool1d, F.max_unpool2d, F.max_unpool3d)[dims - 1]
    shape = (2, 3, 4, 6, 8)[: dims + 2]
    for dtype in FLOATS:
        values, indices = pool(make(shape, dtype, 1, (-4, 4)))
        compare(lambda x: unpool(x, indices.to(x.device), 2), values, f"unpool {name_of(dtype)}")  # noqa: B023
    if dims == 2:
        values, indices = pool(make(shape, torch.float32).to(memory_format=torch.channels_last))
        compare(lambda x: unpool(x, indices.to(x.device), 2), values, "unpool channels last")


def test_empty() -> None:
    for function, shape in (
        (max_pool(2, 2), (0, 3, 4, 4)),
        (max_pool(3, 2), (0, 3, 4, 4, 4)),
        (lambda x: F.avg_pool2d(x, 2), (0, 3, 4, 4)),
        (lambda x: F.adaptive_avg_pool2d(x, 2), (0, 3, 4, 4)),
        (adaptive_max(2, 2), (0, 3, 4, 4)),
    ):
        x = torch.ones(shape)
        assert_same(run_on_device(function, to_device(x), dispatches=None), function(x), "empty")


@pytest.mark.parametrize(
    ("function", "shape", "dtype"),
    (
        (max_pool(2, 2), (4, 4), torch.float32),
        (max_pool(2, 2), (2, 3, 4, 4), torch.bool),
        (max_pool(2, 2, 0), (2, 3, 4, 4), torch.float32),
        (max_pool(2, 2, 1, 2), (2, 3, 4, 4), torch.float32),
        (max_pool(2, 5), (2, 3, 4, 4), torch.float32),
        (max_pool(3, 2), (4, 4), torch.float32),
        (max_pool(3, (2, 2)), (2, 3, 4, 4, 4), torch.float32),
        (max_pool(3, 2, 1, 2), (2, 3, 4, 4, 4), torch.float32),
        (max_pool(3, 5), (2, 3, 4, 4, 4), torch.float32),
        (max_pool(3, 2), (2, 0, 4, 4, 4), torch.float32),
        (max_pool(3, 2), (2, 3, 4, 4, 4), torch.bool),
        (lambda x: F.avg_pool2d(x, 2), (2, 3, 4, 4), torch.int32),
        (lambda x: F.avg_pool2d(x, 2, divisor_override=0), (2, 3, 4, 4), torch.float32),
        (lambda x: F.avg_pool3d(x, 2), (2, 3, 4, 4, 4), torch.float16),
        (lambda x: F.avg_pool3d(x, 5), (2, 3, 4, 4, 4), torch.float32),
        (lambda x: F.adaptive_avg_pool2d(x, 2), (4, 4), torch.float32),
        (lambda x: F.adaptive_avg_pool2d(x, 2), (2, 3, 0, 4), torch.float32),
        (lambda x: F.adaptive_avg_pool2d(x, 2), (2, 3, 4, 4), torch.int64),
        (lambda x: F.adaptive_avg_pool3d(x, 2), (4, 4, 4), torch.float32),
        (lambda x: F.adaptive_avg_pool3d(x, 2), (2, 0, 4, 4, 4), torch.float32),
        (adaptive_max(2, 2), (2, 3, 4, 4), torch.int64),
        (adaptive_max(3, 2), (4, 4), torch.float32),
        (fractional(2, 3, 4), (2, 3, 4, 4), torch.float32),
        (fractional(3, 3, 4), (2, 3, 4, 4, 4), torch.float32),
        (lambda x: F.max_unpool2d(x, torch.zeros_like(x), 2), (2, 3, 4, 4), torch.float32),
        (
            lambda x: F.max_unpool2d(x, torch.zeros(1, 1, 1, 1, dtype=torch.long, device=x.device), 2),
            (1, 1, 2, 2),
            torch.float32,
        ),
        (lambda x: F.max_unpool2d(x, x, 2), (2, 3, 4, 4), torch.int64),
        (lambda x: F.max_unpool3d(x, x, 2), (2, 3, 4, 4, 4), torch.int64),
    ),
)
def test_refused(function: Function, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    x = torch.ones(shape).to(dtype)
    expected = outcome(function, x)[1]
    assert expected is not None
    assert_same_error(outcome(function, to_device(x))[1], expected, str(shape))
