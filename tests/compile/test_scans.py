"""Scans: rows that a lane walks, rows that a workgroup walks, and rows that are left to the eager kernel."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch._higher_order_ops.associative_scan import associative_scan

from tests.compile.support import check, compiled, count, with_once
from tests.support import DEVICE, DTYPES, assert_same, to_device

# Rows side by side and behind each other, shorter and longer than a workgroup, and not a multiple of its lanes.
SHAPES = [(3, 5), (2, 100), (5, 1000), (100, 7), (40, 64), (1, 4096)]


@pytest.mark.parametrize("shape", with_once(SHAPES, (5, 1000)), ids=str)
@pytest.mark.parametrize("dim", [0, 1])
def test_rows(shape: tuple[int, int], dim: int) -> None:
    check(
        lambda x: (x.cumsum(dim), x.cumprod(dim), x.cummax(dim), x.cummin(dim), x.logcumsumexp(dim)),
        torch.randn(shape), rtol=1e-5, atol=1e-4,
    )  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes(dtype: torch.dtype) -> None:
    x = torch.randint(0, 3, (4, 50)).to(dtype)
    check(lambda x: (x.cumsum(0), x.cumsum(1), x.cumprod(1), x.cumsum(1, dtype=torch.int64)), x)
    check(lambda x: (x.cummax(1), x.cummin(0)), x)


def test_int64_is_exact() -> None:
    x = torch.randint(-(2**60), 2**60, (5, 37))
    check(lambda x: (x.cumsum(1), x.cumprod(0), x.cummax(1), (x > 0).cumsum(1)), x)


def test_nan_wins_and_stays() -> None:
    x = torch.randn(4, 50)
    x[1, 7] = x[3, 0] = float("nan")
    x[2] = float("-inf")
    check(lambda x: (x.cummax(1), x.cummin(1), x.cumsum(1), x.logcumsumexp(1)), x)


def test_exponentials_are_summed_before_their_logarithm() -> None:
    """As eager's kernel does: a logarithm in each step would be rounded in each step."""
    x = torch.rand(3, 2000) + 300
    expected = x.double().logcumsumexp(1)
    call = compiled(lambda x: x.logcumsumexp(1))
    assert (call(x.to(DEVICE)).cpu() - expected).abs().max() < 4e-5
    assert count(call, x.to(DEVICE)) == 1
    halves = (x[:, :50] / 100).half()
    check(lambda x: x.logcumsumexp(1) + 1, halves, launches=1)


@pytest.mark.once
def test_what_is_fused_with_a_scan() -> None:
    """A sum of the same rows, what comes before and what comes behind: one kernel where the rows are walked once."""
    x = torch.rand(2, 77)
    check(lambda x: (x * 2 + 1).cumsum(1).sin(), x, launches=1, rtol=1e-4, atol=1e-5)
    check(lambda x: (x.cumsum(1) / x.sum(1, keepdim=True), x.argmax(1), x.var(1), x.amax(1)), x, launches=1,
          rtol=1e-4, atol=1e-5)  # fmt: skip
    check(lambda x: x.cumsum(1).cumsum(1).cumsum(0), x, rtol=1e-4, atol=1e-4)


def test_gradients() -> None:
    x = torch.rand(3, 40)
    call = compiled(lambda x: x.cumsum(1).square().sum() + x.cumprod(1).sum() + x.logcumsumexp(0).sum())
    moved = to_device(x).requires_grad_()
    x.requires_grad_()
    call(moved).backward()
    (x.cumsum(1).square().sum() + x.cumprod(1).sum() + x.logcumsumexp(0).sum()).backward()
    assert_same(moved.grad, x.grad, rtol=1e-4, atol=1e-4)


def test_dynamic_rows() -> None:
    torch._dynamo.reset()
    call = torch.compile(lambda x: (x.cumsum(1), x.cumsum(0)), backend="webgpu", fullgraph=True, dynamic=True)
    for rows, length in ((3, 5), (9, 64), (2, 17)):
        x = torch.randn(rows, length)
        assert_same(call(x.to(DEVICE)), (x.cumsum(1), x.cumsum(0)), rtol=1e-5, atol=1e-5)


def test_long_rows_are_the_eager_kernel(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="torch_webgpu.inductor"):
        check(lambda x: x.cumsum(0) + 1, torch.rand(100_000), rtol=1e-5, atol=1e-2)
    assert "a scan runs eagerly: rows of 100000 elements are long" in caplog.text


def test_associative_scan() -> None:
    def recurrence(a: Any, b: Any) -> Any:
        return a[0] * b[0], a[1] * b[0] + b[1]

    def function(x: torch.Tensor, y: torch.Tensor) -> Any:
        return associative_scan(recurrence, (x, y), dim=1, combine_mode="generic")

    x, y = torch.rand(6, 70), torch.randn(6, 70)
    state, expected = torch.zeros(6), []
    for i in range(70):
        state = state * x[:, i] + y[:, i]
        expected.append(state)
    assert_same(
        compiled(function)(*to_device((x, y)))[1], torch.stack(expected, 1), rtol=1e-4, atol=1e-5, strides=False
    )
