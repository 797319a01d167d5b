"""scaled_dot_product_attention with what follows: results of the CPU, in the dispatches of attention alone."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.compile.support import check, compiled, count
from tests.support import DEVICE, FLOATS, assert_same, name_of, to_device
from torch_webgpu import _C
from torch_webgpu.inductor import launch

attend = F.scaled_dot_product_attention


def randn(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def of_attention(*args: Any, **options: Any) -> int:
    """The dispatches of attention alone."""
    return count(lambda: attend(*to_device(args), **options))


@pytest.fixture(params=["", "decode", "64 rows", "32 rows", "lanes"])
def kernel(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param and launch.target()["software"]:
        pytest.skip("software adapters have one kernel")
    _C.force_attention(request.param)
    yield request.param
    _C.force_attention("")


# Batches, heads, heads of keys, queries, keys, elements of a head and of a value: blocks of every kind, few queries
# over many keys, whose parts are joined, and heads that are no quads.
SIZES = [(2, 4, 4, 40, 50, 16, 16), (1, 4, 2, 3, 1200, 32, 32), (1, 2, 2, 9, 600, 24, 40), (2, 2, 1, 33, 17, 18, 18),
         (1, 2, 2, 5, 70, 20, 22)]  # fmt: skip


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_every_kernel_passes_its_elements_on(sizes: tuple[int, ...], kernel: str) -> None:
    batch, heads, kv_heads, queries, keys, head, value = sizes
    q, k, v = (
        randn(batch, heads, queries, head),
        randn(batch, kv_heads, keys, head),
        randn(batch, kv_heads, keys, value),
    )
    gate, residual = randn(batch, heads, queries, value), randn(value)
    options = {"enable_gqa": heads != kv_heads, "scale": 0.3}
    launches = of_attention(q, k, v, **options)
    check(
        lambda q, k, v, gate, residual: attend(q, k, v, **options) * torch.sigmoid(gate) + residual,
        q, k, v, gate, residual, launches=launches, rtol=1e-4, atol=1e-5,
    )  # fmt: skip
    causal = {**options, "is_causal": True}
    check(lambda q, k, v: attend(q, k, v, **causal).relu(), q, k, v, launches=launches, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", (torch.float32, torch.bool), ids=str)
def test_masks(dtype: torch.dtype, kernel: str) -> None:
    q, k, v, mask = randn(2, 2, 20, 16), randn(2, 2, 30, 16), randn(2, 2, 30, 16), randn(2, 1, 20, 30)
    mask = mask if dtype.is_floating_point else mask > 0
    launches = of_attention(q, k, v, mask)
    check(lambda q, k, v, m: attend(q, k, v, m) * 2, q, k, v, mask, launches=launches, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("head", (16, 18))
@pytest.mark.parametrize("dtype", FLOATS[1:], ids=name_of)
def test_casts(dtype: torch.dtype, head: int) -> None:
    q, k, v = (randn(1, 2, 12 + i, head).to(dtype) for i in (0, 8, 8))
    expected = attend(q.float(), k.float(), v.float()) * 2
    moved = to_device((q, k, v))
    for to in (torch.float32, dtype):
        call = compiled(lambda q, k, v, to=to: (attend(q, k, v) * 2).to(to))
        assert_same(call(*moved), expected.to(to), rtol=2 * torch.finfo(dtype).eps, atol=1e-2)
        assert count(call, *moved) == 1


def test_heads_side_by_side() -> None:
    """As projections give them and take them: the result lies in the order in which it is used."""
    x, gate = randn(2, 10, 3, 4, 16), randn(2, 10, 64)

    def gated(q: Tensor, k: Tensor, v: Tensor, gate: Tensor) -> Tensor:
        return attend(q, k, v).transpose(1, 2).reshape(2, 10, 64) * gate

    def projected(x: Tensor, gate: Tensor) -> Tensor:
        return gated(*x.permute(2, 0, 3, 1, 4), gate)

    check(projected, x, gate, launches=1, rtol=1e-4, atol=1e-5)
    q, k, v = (part.contiguous() for part in x.permute(2, 0, 3, 1, 4))
    check(gated, q, k, v, gate, launches=1, rtol=1e-4, atol=1e-5)


def test_a_gate_in_the_memory_of_the_operands() -> None:
    x = randn(2, 4, 3, 10, 16)
    check(lambda x: attend(x[:, 0], x[:, 1], x[:, 2]) * x[:, 3], x, rtol=1e-4, atol=1e-5)


def test_a_result_of_two_uses() -> None:
    q, k, v = randn(1, 2, 10, 16), randn(1, 2, 12, 16), randn(1, 2, 12, 16)
    check(lambda q, k, v: (attend(q, k, v) * 2, attend(q, k, v)), q, k, v, launches=1, rtol=1e-4, atol=1e-5)
    check(lambda q, k, v: (attend(q, k, v) * 2).sum(-1), q, k, v, launches=2, rtol=1e-4, atol=1e-4)


def gradients(call: Callable[..., Tensor], args: list[Tensor]) -> list[Tensor]:
    args = [x.clone().requires_grad_() for x in args]
    call(*args).square().sum().backward()
    return [x.grad for x in args]  # type: ignore[misc]


@pytest.mark.parametrize("queries", (20, 3))
def test_gradients(queries: int) -> None:
    args = [randn(2, 2, queries, 16), randn(2, 2, 800, 16), randn(2, 2, 800, 16), randn(2, 2, queries, 16)]

    def function(q: Tensor, k: Tensor, v: Tensor, gate: Tensor) -> Tensor:
        return attend(q, k, v, is_causal=True) * gate.sigmoid()

    actual = gradients(compiled(function), to_device(args))
    assert_same(actual, gradients(function, args), rtol=1e-4, atol=1e-4)


def test_forward_of_a_training_step_takes_the_gate_along() -> None:
    args = [x.to(DEVICE).requires_grad_() for x in (randn(1, 2, 20, 16), randn(1, 2, 24, 16), randn(1, 2, 24, 16))]
    gate = randn(1, 2, 20, 16).to(DEVICE)
    call = compiled(lambda q, k, v: attend(q, k, v) * gate)
    for _ in range(2):
        call(*args)
    assert count(call, *args) <= of_attention(*(x.detach().cpu() for x in args)) + 1


def test_dropout_is_eager() -> None:
    """Its random numbers come with each call."""
    q, k, v = to_device([randn(1, 2, 20, 16), randn(1, 2, 24, 16), randn(1, 2, 24, 16)])
    call = compiled(lambda q, k, v: attend(q, k, v, dropout_p=0.5) * 2)
    first, second = call(q, k, v), call(q, k, v)
    assert not torch.equal(first, second)


def test_sizes_that_are_not_known() -> None:
    call = compiled(lambda q, k, v, gate: attend(q, k, v) * gate, dynamic=True)
    for queries, keys in itertools.product((3, 17), (5, 700)):
        args = randn(2, 2, queries, 16), randn(2, 2, keys, 16), randn(2, 2, keys, 16), randn(2, 2, queries, 16)
        assert_same(call(*to_device(args)), attend(*args[:3]) * args[3], rtol=1e-4, atol=1e-5)
