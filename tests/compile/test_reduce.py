"""Reductions: rows of all lengths, along and across memory, with what is fused before and behind them."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from tests.compile.support import check, compiled, with_once
from tests.support import DTYPES, to_device

SHAPES = [(3, 5), (64, 8), (5, 64), (7, 33), (2, 1000), (1000, 3), (4, 4097)]


@pytest.mark.parametrize("shape", with_once(SHAPES, (4, 4097)), ids=str)
@pytest.mark.parametrize("dim", [0, 1])
def test_rows(shape: tuple[int, int], dim: int) -> None:
    check(
        lambda x: (x.sum(dim), x.amax(dim), x.amin(dim), x.argmax(dim), x.argmin(dim), (x > 1).any(dim), x.mean(dim)),
        torch.randn(shape), rtol=1e-5, atol=1e-4,
    )  # fmt: skip


def test_whole_tensor() -> None:
    for numel in (1, 63, 4096, 100003):
        check(lambda x: (x.sum(), x.amax(), x.argmax(), x.mean()), torch.randn(numel), rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes(dtype: torch.dtype) -> None:
    x = torch.randint(0, 5, (6, 40)).to(dtype)
    check(lambda x: (x.sum(1), x.amax(1), x.amin(0)), x)
    if dtype is not torch.uint8:  # Inductor's any() gives bool, eager's uint8
        check(lambda x: (x.any(1), x.all(1)), x)


@pytest.mark.once
def test_int64_is_exact() -> None:
    x = torch.randint(-(2**60), 2**60, (5, 37))
    check(lambda x: (x.sum(1), x.amax(1), x.argmin(1), x.prod(1)), x)


@pytest.mark.once
def test_nan_wins() -> None:
    x = torch.randn(6, 40)
    x[1, 7] = x[4, 39] = x[4, 2] = float("nan")
    x[2] = float("-inf")
    check(lambda x: (x.amax(1), x.amin(1), x.argmax(1), x.argmin(1), x.max(0), x.sum(1)), x)


def test_first_of_equals_wins() -> None:
    check(lambda x: (x.argmax(1), x.argmin(1), x.max(1), x.min(1)), torch.randint(0, 3, (9, 50)).float())


@pytest.mark.parametrize("dim", [-1, 0])
@pytest.mark.parametrize("shape", [(16, 1000), (8, 36), (30, 7)], ids=str)
def test_softmax_is_one_launch(shape: tuple[int, int], dim: int) -> None:
    x = torch.randn(shape)
    check(lambda x: torch.softmax(x, dim), x, launches=1, rtol=1e-5, atol=1e-6)
    check(lambda x: torch.log_softmax(x, dim), x, launches=1, rtol=1e-5, atol=1e-5)


@pytest.mark.once
def test_norms_are_one_launch() -> None:
    x, y, w, b = torch.randn(16, 256), torch.randn(16, 256), torch.randn(256), torch.randn(256)
    check(lambda x, y, w, b: F.gelu(F.layer_norm(x + y, (256,), w, b)), x, y, w, b, launches=1, rtol=1e-4, atol=1e-5)
    check(lambda x, w: F.rms_norm(x, (256,), w), x, w, launches=1, rtol=1e-5, atol=1e-5)


@pytest.mark.once
def test_variance_of_numbers_far_from_zero() -> None:
    """The mean is 1e5, the spread 1e-2: sums of squares would leave nothing."""
    x = torch.randn(4, 2000, dtype=torch.float64) * 1e-2 + 1e5
    x = x.float()
    for got, wanted in zip(
        compiled(lambda x: (x.var(1), x.std(1)))(to_device(x)), (x.double().var(1), x.double().std(1)), strict=True
    ):
        torch.testing.assert_close(got.cpu().double(), wanted, rtol=1e-3, atol=0)


@pytest.mark.parametrize("size", [(4, 512), (2, 3, 8, 8), (2048,)], ids=str)
def test_layer_norm_shapes(size: tuple[int, ...]) -> None:
    shape = size[1:] or size
    check(lambda x: F.layer_norm(x, shape), torch.randn(size), rtol=1e-4, atol=1e-5)


def test_broadcast_difference() -> None:
    check(lambda a, b: (a[:, None] - b[None]).abs().sum(), torch.randn(33), torch.randn(40), rtol=1e-5, atol=1e-3)
    check(
        lambda a, b: (a[:, None] - b[None]).square().sum((0, 1)), torch.randn(33), torch.randn(40), rtol=1e-5, atol=1e-3
    )


def test_inner_and_outer_dimensions() -> None:
    x = torch.randn(4, 6, 5, 8)
    check(lambda x: (x.sum((0, 2)), x.sum((1, 3)), x.amax((0, 3)), x.mean((2, 3)), x.var((0, 2, 3))), x,
          rtol=1e-4, atol=1e-5)  # fmt: skip


def test_halves_accumulate_in_float() -> None:
    for dtype in (torch.float16, torch.bfloat16):
        x = torch.rand(3, 5000).to(dtype)
        check(lambda x: x.mean(1), x)


def test_dynamic_rows() -> None:
    call = check(lambda x: (torch.softmax(x, -1), x.sum(0)), torch.randn(5, 9), dynamic=True, rtol=1e-5, atol=1e-5)
    assert call is not None
