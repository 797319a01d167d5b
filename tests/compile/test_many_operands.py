"""More operands than the adapter binds: a kernel is split, and nothing runs eagerly for it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.compile.support import check, compiled, count
from tests.support import DEVICE, assert_same, to_device

COUNT = 40


def operands(*shape: int) -> list[Tensor]:
    return [torch.randn(*shape, generator=torch.Generator().manual_seed(i)) for i in range(COUNT)]


def bindings() -> int:
    return min(32, torch.webgpu.get_device_properties().limits["maxStorageBuffersPerShaderStage"])


def total(tensors: list[Tensor]) -> Tensor:
    result = tensors[0]
    for tensor in tensors[1:]:
        result = result + tensor
    return result


def most_used(tensors: list[Tensor]) -> Tensor:
    """Every sum is used twice, so that none can be left out."""
    result = tensors[0]
    for tensor in tensors[1:]:
        result = result * tensor.sin() + result.cos()
    return result


CASES: dict[str, tuple[Callable[[list[Tensor]], Any], tuple[int, ...]]] = {
    "a sum": (total, (5, 12)),
    "a chain": (most_used, (64,)),
    "a sum of rows": (lambda tensors: total(tensors).sum(1), (5, 300)),
    "softmax of a sum": (lambda tensors: torch.softmax(total(tensors), -1), (5, 300)),
    "a norm of a sum": (lambda tensors: F.layer_norm(total(tensors), (300,)), (5, 300)),
    "a scan of a sum": (lambda tensors: total(tensors).cumsum(1), (5, 100)),
    "a maximum of products": (lambda tensors: total([a * b for a, b in itertools.pairwise(tensors)]).amax(), (7, 33)),
    "results of one operand": (lambda tensors: [(tensors[0] * (i + 1)).exp() for i in range(COUNT)], (33,)),
    "results of all operands": (lambda tensors: [t * tensors[0] for t in tensors], (33,)),
    "statistics of each": (lambda tensors: [t.var(1) + t.amax(1) for t in tensors], (4, 60)),
    "a stack": (lambda tensors: torch.stack(tensors).relu() * 2, (6, 10)),
    "a choice": (lambda tensors: torch.where(total(tensors[:20]) > 0, total(tensors[20:]), tensors[3]), (70,)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_kernel_is_split(name: str, caplog: pytest.LogCaptureFixture) -> None:
    function, shape = CASES[name]
    with caplog.at_level("INFO", logger="torch_webgpu.inductor"):
        call = check(lambda *tensors: function(list(tensors)), *operands(*shape), rtol=1e-4, atol=1e-4)
    assert "eagerly" not in caplog.text
    # Each kernel leaves one result to the next.
    assert count(call, *to_device(operands(*shape))) <= math.ceil(3 * COUNT / (bindings() - 2)) + 3


@pytest.mark.parametrize("kind", ("product", "convolution", "batches"))
def test_an_epilogue_of_many_operands(kind: str) -> None:
    """It takes what can be bound beside the product's own, and kernels behind it take the rest."""
    if kind == "convolution":
        args, shape = [torch.randn(1, 4, 8, 8), torch.randn(6, 4, 3, 3)], (1, 6, 6, 6)
        multiply: Callable[[Tensor, Tensor], Tensor] = F.conv2d
    elif kind == "batches":
        args, shape, multiply = [torch.randn(3, 8, 16), torch.randn(3, 16, 12)], (3, 8, 12), torch.bmm
    else:
        args, shape, multiply = [torch.randn(8, 16), torch.randn(16, 12)], (8, 12), torch.mm

    def function(a: Tensor, b: Tensor, *tensors: Tensor) -> Tensor:
        return total([multiply(a, b), *tensors]).relu()

    check(function, *args, *operands(*shape), rtol=1e-4, atol=1e-4)
    few = [*args, *operands(*shape)[: bindings() - 4]]
    call = compiled(function)
    assert_same(call(*to_device(few)), function(*few), rtol=1e-4, atol=1e-4)
    assert count(call, *to_device(few)) <= count(multiply, *to_device(args)) + 1


def test_gradients_of_many_operands() -> None:
    tensors = [t.requires_grad_() for t in operands(4, 30)]
    moved = [t.detach().to(DEVICE).requires_grad_() for t in tensors]
    most_used(tensors).square().mean().backward()
    compiled(lambda *ts: most_used(list(ts)).square().mean())(*moved).backward()
    for one, other in zip(moved, tensors, strict=True):
        assert_same(one.grad, other.grad, rtol=1e-3, atol=1e-5)
