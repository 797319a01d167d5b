"""softmax, log_softmax and their gradients against the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.support import FLOATS, assert_same, assert_same_error, name_of, on_device, outcome, run_on_device, to_device

CALLS = {torch.softmax: torch._softmax_backward_data, torch.log_softmax: torch._log_softmax_backward_data}
CLOSE = {"rtol": 1e-5, "atol": 1e-5}
# the CPU rounds some of its steps to float16 or bfloat16
HALF = {"rtol": 2e-2, "atol": 4e-2}


def inputs() -> list[tuple[torch.Tensor, int]]:
    """Whole quads, odd rows, rows as long as registers hold, rows beside each other, short rows, strides, a scalar."""
    x = torch.randn(40_000, generator=torch.Generator().manual_seed(0)) * 3
    return [
        (x[:4096].view(16, 256), 1),
        (x[1:7008].view(7, 1001), 1),
        (x[:35_840].view(35, 1024), 1),
        (x[:7000].view(7, 1000), 1),
        (x[:4096].view(16, 256), 0),
        (x[:6000].view(5, 60, 20), 1),
        (x[:40].view(8, 5), 1),
        (x[:4096].view(64, 64).t(), 1),
        (x[:4096].view(16, 256)[:, ::2], 1),
        (x[:30_000].view(1, 30_000).expand(2, 30_000), 1),
        (x[0], 0),
    ]


@pytest.mark.parametrize("dtype", FLOATS, ids=name_of)
def test_forward_and_backward(dtype: torch.dtype) -> None:
    for index, (x, dim) in enumerate(inputs()[: None if dtype == torch.float32 else 5]):
        x = x.to(dtype) if dtype != x.dtype else x
        for call, backward in CALLS.items():
            result = call(x, dim)
            actual = run_on_device(call, to_device(x), dim)
            assert_same(actual, result, f"{call.__name__} {index}", **(CLOSE if dtype == torch.float32 else HALF))
            # from the same result on both sides: its rounding counts for more than the op's
            gradient = torch.randn_like(result)
            actual = run_on_device(backward, *to_device((gradient, result)), dim, dtype)
            expected = backward(gradient.float(), result.float(), dim, torch.float32).to(dtype)
            # the gradients of a row are summed: of thousands, in another order than the CPU's
            tolerance = {"rtol": 1e-5, "atol": 5e-5} if dtype == torch.float32 else {}
            assert_same(actual, expected, f"gradient of {call.__name__} {index}", strides=False, **tolerance)


def test_autograd() -> None:
    x = torch.randn(6, 40)
    for call in CALLS:
        host, device = x.clone().requires_grad_(), to_device(x).requires_grad_()
        call(host, 1).square().sum().backward()
        with on_device():
            result = call(device, 1)
            (result * result).sum().backward()
        assert_same(device.grad, host.grad, **CLOSE)


def test_special_values() -> None:
    inf = float("inf")
    x = torch.randn(8, 64)
    x[0, 3] = float("nan")
    x[1, 5] = inf
    x[2] = -inf
    x[3, :40] = -inf
    x[4, 0] = torch.finfo(torch.float32).min
    x[5] = torch.finfo(torch.float32).min
    x[6, 7] = torch.finfo(torch.float32).max
    for y in (x, x[:, :63], x.t()):
        for call in CALLS:
            for dim in (0, 1):
                assert_same(run_on_device(call, to_device(y), dim), call(y, dim), f"{call.__name__} {dim}", **CLOSE)


def test_rows_sum_to_one_far_from_zero() -> None:
    x = torch.randn(4, 5000) * 20 + 1000
    result = run_on_device(torch.softmax, to_device(x), 1).cpu().double()
    exact = x.double().softmax(1)
    torch.testing.assert_close(result.sum(1), torch.ones(4, dtype=torch.float64), rtol=0, atol=2e-6)
    torch.testing.assert_close(result, exact, rtol=1e-5, atol=1e-30)


def test_out_and_empty() -> None:
    x = torch.randn(6, 8)
    whole = to_device(x)
    for out in (torch.empty(0), torch.empty(8, 6).t()):
        on = to_device(out)
        with on_device() as results:
            results.append(torch._softmax(whole, 1, False, out=on))
        # the CPU takes any out= for contiguous, and is wrong where it is not
        assert_same(on, torch.softmax(x, 1), strides=False, **CLOSE)
    torch._softmax(whole, 1, False, out=whole)
    assert_same(whole, torch.softmax(x, 1), **CLOSE)
    for shape in ((0,), (0, 3), (3, 0)):
        for call in CALLS:
            empty = torch.empty(shape)
            assert_same(call(to_device(empty), 0), call(empty, 0))


ERRORS: tuple[Callable[[Callable[[torch.Tensor], torch.Tensor]], Any], ...] = (
    lambda to: torch.softmax(to(torch.ones(3, dtype=torch.int64)), 0),
    lambda to: torch.log_softmax(to(torch.ones(3, 3, dtype=torch.int32)), 1),
    lambda to: torch.softmax(to(torch.rand(3)), 1),
    lambda to: torch._softmax(to(torch.rand(3).half()), 0, True),
    lambda to: torch._log_softmax(to(torch.rand(3).half()), 0, True),
    lambda to: torch._softmax(to(torch.rand(3)), 0, True),
)


@pytest.mark.parametrize("index", range(len(ERRORS)))
def test_errors(index: int) -> None:
    _, wanted = outcome(ERRORS[index], lambda x: x)
    _, error = outcome(ERRORS[index], to_device)
    assert wanted is not None
    assert_same_error(error, wanted)
