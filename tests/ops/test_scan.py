"""Running totals: every dtype, dimension and layout, and lines long enough to be scanned in blocks."""

from __future__ import annotations

import pytest
import torch

from tests.support import (
    DTYPES,
    FLOATS,
    assert_same,
    assert_same_error,
    make,
    name_of,
    outcome,
    run_on_device,
    to_device,
)

SUMS = (torch.cumsum, torch.cumprod)
EXTREMA = (torch.cummax, torch.cummin)


def layouts(dtype: torch.dtype, domain: tuple[float, float] | None = None) -> list[torch.Tensor]:
    cube = make((5, 7, 6), dtype, 1, domain)
    return [
        cube,
        cube.transpose(0, 2),
        cube[1::2, :, 3:],
        make((33,), dtype, 1, domain)[1:],
        make((1, 4), dtype, 1, domain),
    ]


def check(function, *args, **kwargs) -> None:
    message = f"{function.__name__} {[x.shape if isinstance(x, torch.Tensor) else x for x in args]} {kwargs}"
    expected, refused = outcome(function, *args, **kwargs)
    if refused is not None:
        assert_same_error(outcome(function, *to_device(args), **kwargs)[1], refused, message)
        return
    actual = run_on_device(function, *to_device(args), **kwargs)
    for one, other in zip(*(x if isinstance(x, tuple) else (x,) for x in (actual, expected)), strict=True):
        units = 16 if other.dtype == torch.float32 else 2
        rtol = units * torch.finfo(other.dtype).eps if other.is_floating_point() else None
        assert_same(one, other, message, rtol=rtol, atol=None if rtol is None else rtol)


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
@pytest.mark.parametrize("function", SUMS, ids=lambda f: f.__name__)
def test_sums(function, dtype: torch.dtype) -> None:
    domain = (0.5, 2) if dtype.is_floating_point else None
    for tensor in layouts(dtype, domain):
        for dim in range(-tensor.dim(), tensor.dim()):
            check(function, tensor, dim)
    check(function, make((), dtype), 0)
    check(function, make((0, 3), dtype), 0)
    check(function, make((5, 3), dtype, 1, domain), 1, dtype=torch.float32)
    check(function, make((5, 3), dtype, 1, domain), 1, dtype=torch.int8)
    check(function, make((5, 3), dtype, 1, domain), 1, dtype=torch.bool)
    check(function, make((5, 3), dtype), 2)


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
@pytest.mark.parametrize("function", EXTREMA, ids=lambda f: f.__name__)
def test_extrema(function, dtype: torch.dtype) -> None:
    for tensor in layouts(dtype):
        for dim in range(tensor.dim()):
            check(function, tensor, dim)
    check(function, make((), dtype), 0)
    check(function, make((3, 0), dtype), 1)
    check(function, make((3000,), dtype, 1), 0)


@pytest.mark.parametrize("dtype", FLOATS, ids=name_of)
def test_logcumsumexp(dtype: torch.dtype) -> None:
    for tensor in layouts(dtype):
        for dim in range(tensor.dim()):
            check(torch.logcumsumexp, tensor, dim)
    inf = float("inf")
    check(torch.logcumsumexp, torch.tensor([-inf, -inf, 1, 90, -90, 100, inf, 1, float("nan"), 0], dtype=dtype), 0)
    check(torch.logcumsumexp, torch.tensor([1, 2]), 0)


def test_forms() -> None:
    tensor = make((4, 6), torch.float32, 0, (0, 1))
    for function in SUMS:
        expected = function(tensor, 0)
        moved = to_device(tensor)
        out = torch.empty(6, 4, device="webgpu").t()
        assert_same(run_on_device(function, moved, 0, out=out), expected, "out", strides=False)
        assert_same(run_on_device(getattr(moved, function.__name__ + "_"), 0), expected, "in place")
    values, indices = torch.empty(0, device="webgpu"), torch.empty(0, dtype=torch.int64, device="webgpu")
    run_on_device(torch.cummax, to_device(tensor), 1, out=(values, indices))
    assert_same((values, indices), tuple(torch.cummax(tensor, 1)))


def test_blocks() -> None:
    """Sizes around those of blocks; sums of a million elements keep the accuracy of a float64 sum."""
    for size in (255, 256, 1023, 4096, 40_001, 131_072):
        tensor = make((size,), torch.int64)
        check(torch.cumsum, tensor, 0)
        check(torch.cumsum, tensor.to(torch.int32), 0, dtype=torch.int32)
        check(torch.cummax, tensor, 0)
    check(torch.cumsum, make((3, 20_000), torch.int32), 1)
    check(torch.cumsum, make((20_000, 3), torch.int32), 0)
    million = torch.rand(1_000_000, generator=torch.Generator().manual_seed(0))
    expected = million.double().cumsum(0)
    actual = run_on_device(torch.cumsum, to_device(million), 0).cpu().double()
    assert ((actual - expected).abs() / expected).max() < 2e-6


def test_gradients() -> None:
    for function in (lambda x: torch.cumsum(x, 1), lambda x: torch.logcumsumexp(x, 0), lambda x: torch.cummin(x, 1)[0]):
        tensor = make((4, 5), torch.float32, 0, (-2, 2)).requires_grad_()
        moved = to_device(tensor.detach()).requires_grad_()
        weights = make((4, 5), torch.float32, 1, (-2, 2))
        (function(tensor) * weights).sum().backward()
        (function(moved) * to_device(weights)).sum().backward()
        assert_same(moved.grad, tensor.grad, "gradient")
