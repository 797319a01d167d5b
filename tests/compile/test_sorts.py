"""Sorts: short rows in a generated kernel of GPUs, with what is fused to them, and all others by the eager kernel."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tests.compile.support import check, compiled
from tests.support import DEVICE, DTYPES, assert_same, name_of
from torch_webgpu.inductor import launch


def pair(x: Tensor, dim: int, descending: bool = False) -> tuple[Tensor, Tensor]:
    return torch.sort(x, dim=dim, descending=descending, stable=True)


# Lengths around powers of two, rows side by side, and the longest.
SHAPES = [(3, 5), (2, 100), (5, 1000), (100, 7), (40, 64), (2, 65), (1, 1024), (4, 1)]


@pytest.mark.parametrize("descending", (False, True))
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_rows(shape: tuple[int, int], descending: bool) -> None:
    check(lambda x: (*pair(x, 0, descending), *pair(x, 1, descending)), torch.randn(shape))


@pytest.mark.parametrize("descending", (False, True))
@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_equal_keys_keep_their_order(dtype: torch.dtype, descending: bool) -> None:
    x = torch.randint(0, 4, (5, 200)).to(dtype)
    check(lambda x: pair(x, 1, descending), x)


def test_int64_is_exact() -> None:
    x = torch.randint(-(2**62), 2**62, (5, 90))
    check(lambda x: pair(torch.cat((x, x + 1), 1), 1), x)


@pytest.mark.parametrize("descending", (False, True))
def test_special_numbers(descending: bool) -> None:
    inf, nan = float("inf"), float("nan")
    x = torch.tensor([[0.0, -0.0, nan, inf, -inf, 1e-45, -1e-45, -0.0, 0.0, nan, 3e38, -3e38]]).repeat(3, 9)
    call = compiled(lambda x: pair(x, 1, descending))
    for actual, expected in zip(call(x.to(DEVICE)), pair(x, 1, descending), strict=True):
        assert_same(actual, expected, exact=True)


def test_halves_that_are_stored_alike_are_equal() -> None:
    x = torch.linspace(1, 1.01, 300).repeat(2, 1)
    for dtype in (torch.float16, torch.bfloat16):
        call = compiled(lambda x, dtype=dtype: pair((x * 1.5).to(dtype), 1))
        assert_same(call(x.to(DEVICE)), pair((x * 1.5).to(dtype), 1))


def test_what_is_fused_with_a_sort() -> None:
    """What comes before, what comes behind, and a sum of the sorted rows; on GPUs, as others have the eager kernel."""
    x, is_gpu = torch.randn(7, 300), not launch.target()["software"]
    launches = 1 if is_gpu else None

    def function(x: Tensor) -> tuple[Tensor, ...]:
        values, indices = pair(x * 2 + 1, 1)
        return values * 3, indices + 1, (values - x).square().sum(1)

    check(function, x, launches=launches, rtol=1e-5, atol=1e-4)
    check(lambda x: pair(x, 1), x, launches=launches)
    check(lambda x: (pair(x, 1)[0].cumsum(1), x.amax(1)), x, launches=launches, rtol=1e-4, atol=1e-4)
    check(lambda x: pair(x.half(), 1)[0].float(), x, launches=launches)
    check(lambda x: torch.argsort(x, dim=1, stable=True), x, launches=launches)


def test_what_moves_by_other_variables_than_the_sort() -> None:
    check(lambda x, b: x.sort(-1).values * b, torch.randn(16, 8, 100), torch.randn(8, 1))


def test_scans_before_a_sort() -> None:
    """Lanes behind the end of a row have numbers of their own."""
    check(lambda x: pair(x.cumsum(1), 1)[0], torch.randn(7, 300), rtol=1e-4, atol=1e-4)


def test_sorts_of_a_sort_and_of_two_tensors() -> None:
    x, y = torch.randn(4, 100), torch.randn(4, 100)
    check(lambda x, y: (*pair(x, 1), *pair(y, 1, True)), x, y)
    check(lambda x, y: pair(pair(x, 1)[1] % 7 + 0 * y, 1), x, y)
    check(lambda x, y: (*pair(x, 1), *pair(x, 1, True), *pair(x + y, 1)), x, y)


def test_rows_that_together_exceed_the_memory_of_a_workgroup() -> None:
    x, y = torch.randint(-9, 9, (2, 1000)), torch.randint(-9, 9, (2, 1000))
    check(lambda x, y: (*pair(x, 1), *pair(y, 1), pair(x + y, 1)[0].sum(1)), x, y)


def test_gradients() -> None:
    x = torch.randn(3, 40)
    call = compiled(lambda x: (pair(x, 1)[0] * torch.arange(40, device=x.device)).sum())
    moved = x.to(DEVICE).requires_grad_()
    call(moved).backward()
    x.requires_grad_()
    (pair(x, 1)[0] * torch.arange(40)).sum().backward()
    assert_same(moved.grad, x.grad)


def test_rows_of_sizes_that_are_not_known() -> None:
    """Their length has no bound, so they are the eager kernel's."""
    torch._dynamo.reset()
    call = torch.compile(lambda x: pair(x * 2, 1), backend="webgpu", fullgraph=True, dynamic=True)
    for rows, length in ((3, 5), (9, 64), (2, 17)):
        x = torch.randn(rows, length)
        assert_same(call(x.to(DEVICE)), pair(x * 2, 1))


def test_an_unknown_number_of_rows() -> None:
    torch._dynamo.reset()
    call = torch.compile(lambda x: pair(x * 2, 1), backend="webgpu", fullgraph=True)
    for rows in (3, 9, 2):
        x = torch.randn(rows, 60)
        torch._dynamo.mark_dynamic(x, 0)
        assert_same(call(x.to(DEVICE)), pair(x * 2, 1))


def test_long_rows_are_the_eager_kernel(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="torch_webgpu.inductor"):
        check(lambda x: pair(x * 2, 0), torch.rand(5000))
        assert "a sort runs eagerly: rows of 5000 elements are long" in caplog.text
        caplog.clear()
        check(lambda x: pair(x * 2, 0), torch.rand(500))
    assert ("a sort runs eagerly: software adapters merge faster" in caplog.text) is launch.target()["software"]
