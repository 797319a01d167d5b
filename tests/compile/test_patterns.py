"""Programs that went wrong on other backends of Inductor: their reports, as functions of a few lines."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.compile.support import check, compiled
from tests.support import DEVICE, FLOATS, assert_same, assert_same_bits, on_device, to_device

CLOSE = {"rtol": 1e-4, "atol": 1e-5}


def test_three_reductions_one_inside_the_other() -> None:
    """A norm, a softmax over its result, and a sum over that: names of one loop must not be used behind it."""

    def function(x: Tensor, w: Tensor) -> Any:
        y = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * w
        z = torch.softmax(y, -1)
        return z, (z * y).sum(-1), (y - y.amax(-1, keepdim=True)).exp().sum(-1).log().var(0)

    check(function, torch.randn(6, 40, 200), torch.randn(200), **CLOSE)


@pytest.mark.parametrize("shape", [(4, 3, 9, 7), (64, 5), (2, 3, 1000)], ids=str)
def test_batch_norm_trains(shape: tuple[int, ...]) -> None:
    """Statistics, the normalised result and the running averages come from one pass and its second use."""
    kind = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d}[len(shape)]
    module, moved = kind(shape[1]), kind(shape[1]).to(DEVICE)
    call = compiled(moved)
    for seed in range(2):
        x = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
        there = x.to(DEVICE).requires_grad_()
        x.requires_grad_()
        expected, actual = module(x), call(there)
        assert_same(actual, expected, **CLOSE)
        expected.square().mean().backward()
        actual.square().mean().backward()
        assert_same(there.grad, x.grad, **CLOSE)
    assert_same(moved.running_mean, module.running_mean, **CLOSE)
    assert_same(moved.running_var, module.running_var, **CLOSE)


@pytest.mark.parametrize("length", [100, 5000])
def test_layer_norm_far_from_zero(length: int) -> None:
    """The mean is 1e5, the spread 1e-2. Half a place of the mean is 0.4 of the spread, by which a row may be off as a
    whole; what is left must be right, and it is if the variance is."""
    x = (torch.randn(3, length, dtype=torch.float64) * 1e-2 + 1e5).float()
    actual = compiled(lambda x: F.layer_norm(x, (length,), eps=1e-9))(x.to(DEVICE)).cpu().double()
    offset = actual.mean(1, keepdim=True)
    assert offset.abs().max() < 0.4
    torch.testing.assert_close(actual - offset, F.layer_norm(x.double(), (length,), eps=1e-9), rtol=1e-3, atol=1e-3)


def test_norm_of_rows_near_zero() -> None:
    """A small variance under a root: two passes and one must agree where epsilon decides."""
    x = torch.randn(5, 64) * 1e-4
    check(lambda x: (F.layer_norm(x, (64,)), F.rms_norm(x, (64,)), x.var(1).rsqrt()), x, rtol=1e-4, atol=1e-4)


def test_rms_norm_of_a_vector_and_of_nothing() -> None:
    check(lambda x: F.rms_norm(x, (2048,)), torch.randn(2048), **CLOSE)
    check(lambda x: F.rms_norm(x, (8,)) * 2, torch.randn(0, 8))


def test_argmax_over_several_dimensions() -> None:
    """The number of an element in its own tensor, whatever order memory has."""
    x = torch.randn(5, 6, 7)
    check(
        lambda x: (x.argmax(), x.permute(2, 0, 1).argmax(), (x.transpose(0, 1) + 1).argmin(),
                   x.transpose(1, 2).flatten(1).argmax(1), x.permute(2, 1, 0).flatten(0, 1).argmax(0)),
        x,
    )  # fmt: skip
    check(lambda x: (x.t().argmax(), x.t().argmin(keepdim=True)), torch.randn(300, 40))
    check(lambda x: x.transpose(0, 2).max(), torch.randint(0, 4, (3, 4, 5)))


def test_pooled_sum_of_odd_channels() -> None:
    check(lambda x: F.adaptive_avg_pool2d(x, 1).flatten(1).sum(1), torch.randn(2, 11, 7, 5), **CLOSE)


def test_reflection_pad_of_unknown_sizes() -> None:
    torch._dynamo.reset()
    call = torch.compile(lambda x: F.pad(x, (2, 1, 1, 2), mode="reflect") + 1, backend="webgpu", dynamic=True)
    for size in ((1, 2, 5, 6), (2, 3, 7, 4)):
        x = torch.randn(size)
        assert_same(call(x.to(DEVICE)), F.pad(x, (2, 1, 1, 2), mode="reflect") + 1)


def test_integers_into_float_functions() -> None:
    x = torch.arange(1, 9)
    check(lambda x: (torch.polygamma(1, x), x.lgamma(), x.exp(), x / 3, x.float().pow(x)), x, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", FLOATS[1:], ids=str)
def test_halves_agree_with_what_is_stored(dtype: torch.dtype) -> None:
    """A value that overflows or ties only when it is rounded: what is fused behind it may see it unrounded, as on other
    devices. `emulate_precision_casts` rounds where eager code does."""

    def function(x: Tensor) -> Any:
        y = x * 3
        return y, y.isinf(), (y == y.amax()).sum(), (y - y.round()).abs() < 1e-3

    x = torch.cat([torch.linspace(-30, 30, 61), torch.tensor([torch.finfo(dtype).max / 2])]).to(dtype)
    with torch._inductor.config.patch(emulate_precision_casts=True):
        actual = compiled(function)(x.to(DEVICE))
    for one, other in zip(actual, function(x), strict=True):
        assert_same_bits(one, other)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_rotary_embedding(dtype: torch.dtype) -> None:
    def rotate(x: Tensor, angles: Tensor) -> Tensor:
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        a, b = x.chunk(2, -1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

    check(rotate, torch.randn(2, 3, 16, 8).to(dtype), torch.arange(64.0).view(16, 4) / 9)


def test_compiled_again_with_other_sizes() -> None:
    call = compiled(lambda x: (x * 2).sum(1), dynamic=False)
    for size in ((3, 9), (64, 7), (2, 5000), (3, 9)):
        x = torch.randn(size)
        assert_same(call(x.to(DEVICE)), (x * 2).sum(1), rtol=1e-5, atol=1e-4)


def test_sums_into_a_permuted_view() -> None:
    def change(x: Tensor, i: Tensor, s: Tensor) -> Tensor:
        x.t().index_add_(0, i, s)
        x[:, 1:3].mul_(2)
        return x.sum(0)

    x, i, s = torch.randn(5, 8), torch.tensor([1, 1, 7]), torch.randn(3, 5)
    moved = x.to(DEVICE)
    actual = compiled(change)(moved, *to_device((i, s)))
    assert_same(actual, change(x, i, s), **CLOSE)
    assert_same(moved, x, **CLOSE)


def test_bias_of_attention_without_strides() -> None:
    """A bias that is expanded over heads, and one whose rows are padded."""
    q, k, v, bias = (torch.randn(2, 4, 9, 8) for _ in range(4))
    bias = torch.randn(2, 1, 9, 12)[..., :9]
    check(
        lambda q, k, v, bias: F.scaled_dot_product_attention(q, k, v, bias.expand(2, 4, 9, 9) * 2) + 1,
        q, k, v, bias, **CLOSE,
    )  # fmt: skip


def test_random_numbers_are_the_eager_ones() -> None:
    """A graph draws a seed for each op, as on other devices; with `fallback_random` it draws as eager code does."""

    def function(x: Tensor) -> Any:
        likes = torch.rand_like(x), torch.randn_like(x) + 1, torch.randint_like(x, 3, 90), torch.bernoulli(x.sigmoid())
        return (*likes, F.dropout(x, 0.3) * 2, torch.rand(7, device=x.device), torch.randperm(9, device=x.device))

    x = torch.randn(40, 5).to(DEVICE)
    torch.manual_seed(5)
    expected = function(x)
    with torch._inductor.config.patch(fallback_random=True):
        call = compiled(function)
        for _ in range(2):
            torch.manual_seed(5)
            for one, other in zip(call(x), expected, strict=True):
                assert_same_bits(one, other.cpu())


def test_masks_of_several_dropouts_in_backward() -> None:
    def function(x: Tensor, w: Tensor) -> Tensor:
        return F.dropout(F.gelu(F.dropout(x, 0.2) @ w), 0.4)

    x, w = torch.ones(64, 16), torch.eye(16)
    there, w = x.to(DEVICE).requires_grad_(), w.to(DEVICE)
    with on_device(waits=None) as results:
        results.append(compiled(function)(there, w))
        results[0].sum().backward()
    kept = results[0].detach().cpu() != 0
    one = torch.tensor(1.25)
    slope = 0.5 * (1 + torch.erf(one / math.sqrt(2))) + one * torch.exp(-one * one / 2) / math.sqrt(2 * math.pi)
    assert there.grad is not None
    # What either mask dropped has no gradient.
    expected = torch.where(kept, 1.25 * slope / 0.6, 0.0)
    torch.testing.assert_close(there.grad.cpu(), expected, rtol=1e-4, atol=1e-5)
    assert 0.4 < kept.float().mean() < 0.56


def test_every_kind_of_scatter() -> None:
    x, i, s = torch.randn(6, 4), torch.randint(0, 6, (9, 4)), torch.randn(9, 4)
    check(lambda x, i, s: [x.scatter_reduce(0, i, s, r) for r in ("sum", "prod", "amax", "amin", "mean")], x, i, s,
          rtol=1e-5, atol=1e-5)  # fmt: skip
    for dtype in (torch.uint8, torch.int8, torch.int16):
        args = (torch.zeros(6, 4).to(dtype), i, torch.randint(0, 9, (9, 4)).to(dtype))
        check(lambda x, i, s: (x.scatter_add(0, i, s), x.index_add(0, i[:, 0], s)), *args)
    mask = torch.randn(5, 9) > 0
    check(lambda x, m, y: x.masked_scatter(m, y), torch.randn(5, 9), mask, torch.randn(45))


def test_bits_of_other_dtypes() -> None:
    x = torch.randn(8, 8)
    check(lambda x: (x.view(torch.int32) + 1, x.view(torch.int16).view(torch.float32), x.view(torch.uint8) + 1,
                     x.view(torch.int64) + 1, x.half().view(torch.int16) ^ 1), x)  # fmt: skip


def test_sorts_and_searches_are_the_eager_kernels() -> None:
    x, b = torch.randn(5, 9), torch.randn(6).sort().values
    check(lambda x, b: (*(x + 1).sort(1), *x.topk(3), x.kthvalue(3, 1)[0] * 2, torch.bucketize(x, b),
                        torch.searchsorted(b, x, right=True)), x, b)  # fmt: skip
