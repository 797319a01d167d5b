"""mode="reduce-overhead": one tape with buffers of its own, and results that stay as long as somebody holds them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.compile.support import compiled
from tests.support import DEVICE, assert_same

ALLOCATIONS = "allocation.all.allocated"


def allocations(function: Callable[[], Any]) -> int:
    before = torch.webgpu.memory_stats()[ALLOCATIONS]
    function()
    return torch.webgpu.memory_stats()[ALLOCATIONS] - before


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 8))


def test_a_call_allocates_nothing() -> None:
    reference = model()
    call = torch.no_grad()(compiled(model().to(DEVICE), mode="reduce-overhead"))
    inputs = [torch.randn(4, 16, generator=torch.Generator().manual_seed(i)) for i in range(6)]
    moved = [x.to(DEVICE) for x in inputs]
    for i in range(3):
        call(moved[i])
    for x, on_device in zip(inputs, moved, strict=True):
        results: list[Tensor] = []
        assert allocations(lambda x=on_device, results=results: results.append(call(x))) == 0
        assert_same(results[0], reference(x).detach(), rtol=1e-4, atol=1e-5)


def test_results_that_are_held_stay_as_they_are() -> None:
    reference = model()
    call = torch.no_grad()(compiled(model().to(DEVICE), mode="reduce-overhead"))
    inputs = [torch.randn(4, 16, generator=torch.Generator().manual_seed(i)) for i in range(8)]
    results = [call(x.to(DEVICE)) for x in inputs]
    views = [result[1:] for result in results[4:]]
    del results[4:]
    call(inputs[0].to(DEVICE))
    for x, result in zip(inputs, results, strict=False):
        assert_same(result, reference(x).detach(), rtol=1e-4, atol=1e-5)
    for x, view in zip(inputs[4:], views, strict=True):
        assert_same(view, reference(x).detach()[1:], rtol=1e-4, atol=1e-5, strides=False)
    fed_back = call(inputs[0].to(DEVICE))
    call2 = compiled(lambda y: F.gelu(y) + 1, mode="reduce-overhead")
    y = expected = torch.zeros(8)
    y = y.to(DEVICE)
    for _ in range(5):
        y, expected = call2(y), F.gelu(expected) + 1
    assert_same(y, expected, rtol=1e-5, atol=1e-5)
    assert_same(fed_back, reference(inputs[0]).detach(), rtol=1e-4, atol=1e-5)


def test_a_resized_result_is_not_used_again() -> None:
    call = compiled(lambda x: x * 2, mode="reduce-overhead")
    x = torch.arange(4.0, device=DEVICE)
    for _ in range(3):
        y = call(x)
    y.untyped_storage().resize_(0)
    del y
    assert call(x).tolist() == [0, 2, 4, 6]


def test_training() -> None:
    def train(module: nn.Module, call: Callable[[Tensor], Tensor], device: str) -> list[float]:
        optimizer, losses = torch.optim.SGD(module.parameters(), lr=0.1), []
        x, y = (torch.randn(4, n, generator=torch.Generator().manual_seed(n)).to(device) for n in (16, 8))
        for _ in range(5):
            optimizer.zero_grad()
            first, second = call(x), call(x * 2)  # what the first keeps for its backward outlives the second
            loss = F.mse_loss(first, y) + second.square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    module, reference = model().to(DEVICE), model()
    found = train(module, compiled(module, mode="reduce-overhead"), DEVICE)
    torch.testing.assert_close(found, train(reference, reference, "cpu"), rtol=1e-4, atol=1e-5)


def test_each_call_draws_other_random_numbers() -> None:
    call = compiled(lambda x: F.dropout(x, 0.5), mode="reduce-overhead")
    x = torch.ones(256, device=DEVICE)
    call(x)
    masks = [call(x).cpu() for _ in range(4)]
    assert all(not torch.equal(masks[i], masks[i + 1]) for i in range(3))
