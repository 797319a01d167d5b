"""median, nanmedian and mode against the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.support import (
    DTYPES,
    assert_same,
    assert_same_error,
    fallback_mode,
    make,
    name_of,
    on_device,
    outcome,
    run_on_device,
    to_device,
)


@pytest.mark.parametrize("dtype", DTYPES[:-1], ids=name_of)
def test_median(dtype: torch.dtype) -> None:
    few = make((6, 50), dtype, seed=1, domain=(0, 5))  # many of them equal
    any_value = make((6, 50), dtype, seed=2)
    for x in (few, any_value, few[:, ::3], few.t(), few[0, 0]):
        for call in (torch.median, torch.nanmedian):
            for dim in range(max(x.dim(), 1)):
                actual = tuple(run_on_device(call, to_device(x), dim))
                assert_same(actual, tuple(call(x, dim)), f"{call.__name__} {tuple(x.shape)} {dim}", exact=True)
            # which of both zeros, the CPU leaves open
            assert_same(run_on_device(call, to_device(x)) + 0, call(x) + 0, f"{call.__name__} of all", exact=True)


def test_median_of_nan() -> None:
    x = torch.randn(5, 40)
    x[0, 7] = x[0, 9] = float("nan")
    x[1] = float("nan")
    x[2, :39] = float("nan")
    for call in (torch.median, torch.nanmedian):
        for keepdim in (False, True):
            actual = run_on_device(call, to_device(x), 1, keepdim=keepdim)
            expected = call(x, 1, keepdim=keepdim)
            assert_same(actual.values, expected.values, exact=True)
            # where there is nothing but NaN, nanmedian may name any
            known = [0, 2, 3, 4] if call is torch.nanmedian else [0, 1, 2, 3, 4]
            assert torch.equal(actual.indices.cpu()[known], expected.indices[known])
        assert_same(run_on_device(call, to_device(x)), call(x), exact=True)


def test_median_of_nothing() -> None:
    for dtype in DTYPES[:-1]:
        x = torch.empty(0, dtype=dtype)
        if dtype not in (
            torch.int16,
            torch.int8,
            torch.uint8,
        ):  # NaN as one of those is what the CPU's vectors make of it
            assert_same(torch.median(to_device(x)), torch.median(x), str(dtype), exact=True)


def test_median_of_many() -> None:
    x = torch.randn(200_000)
    assert_same(tuple(run_on_device(torch.median, to_device(x), 0)), tuple(torch.median(x, 0)), exact=True)


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_mode(dtype: torch.dtype) -> None:
    x = make((6, 16), dtype, seed=1, domain=(0, 3))  # up to sixteen, the CPU's sort is stable
    for y in (x, x[:, ::2], x.t(), x[0, 0]):
        for dim in range(max(y.dim(), 1)):
            for keepdim in (False, True):
                actual = tuple(run_on_device(torch.mode, to_device(y), dim, keepdim))
                assert_same(actual, tuple(torch.mode(y, dim, keepdim)), f"{tuple(y.shape)} {dim}", exact=True)


@pytest.mark.parametrize("length", (100, 5000))
def test_mode_of_long_rows(length: int) -> None:
    """Which of the equal elements, the CPU leaves to its sort: here it is the last."""
    x = torch.randint(-20, 20, (3, length))
    with fallback_mode("quiet"):  # of long rows, sort and gather do most of the work
        values, indices = torch.mode(to_device(x), 1)
    assert_same(values, torch.mode(x, 1).values, exact=True)
    last = [(row == value).nonzero().max() for row, value in zip(x, values.cpu(), strict=True)]
    assert indices.tolist() == last


def test_gradients() -> None:
    x = torch.randn(6, 30)
    for call in (torch.median, torch.nanmedian):
        host, device = x.clone().requires_grad_(), to_device(x).requires_grad_()
        call(host, 1).values.sum().backward()
        with fallback_mode("quiet"):  # scatter, another family
            call(device, 1).values.sum().backward()
        assert_same(device.grad, host.grad)


def test_out() -> None:
    x = torch.randn(6, 30)
    out = torch.empty(12)[::2], torch.empty(0, dtype=torch.int64)
    on = to_device(out)
    with on_device() as results:
        results.extend(torch.median(to_device(x), 1, out=on))
    torch.median(x, 1, out=out)
    assert_same(on, out)


ERRORS: tuple[Callable[[Callable[[torch.Tensor], torch.Tensor]], Any], ...] = (
    lambda to: torch.median(to(torch.empty(3, 0)), 1),
    lambda to: torch.median(to(torch.ones(3, dtype=torch.bool))),
    lambda to: torch.median(to(torch.ones(3, dtype=torch.bool)), 0),
    lambda to: torch.median(to(torch.rand(3)), 1),
    lambda to: torch.mode(to(torch.empty(3, 0)), 1),
    lambda to: torch.mode(to(torch.rand(3)), 1),
)


@pytest.mark.parametrize("index", range(len(ERRORS)))
def test_errors(index: int) -> None:
    _, wanted = outcome(ERRORS[index], lambda x: x)
    _, error = outcome(ERRORS[index], to_device)
    assert wanted is not None
    assert_same_error(error, wanted)
