"""Optimizers with fused=True on the device against the same on the CPU."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.support import DEVICE, assert_same, run_on_device

Made = tuple[list[torch.Tensor], torch.optim.Optimizer]
CASES: dict[str, tuple[Callable[..., torch.optim.Optimizer], dict[str, Any]]] = {
    "adam": (torch.optim.Adam, {"weight_decay": 0.1}),
    "adam_amsgrad": (torch.optim.Adam, {"amsgrad": True, "betas": (0.4, 0.9)}),
    "adamw": (torch.optim.AdamW, {"weight_decay": 0.1}),
    "adamw_maximize": (torch.optim.AdamW, {"maximize": True}),
    "sgd": (torch.optim.SGD, {}),
    "sgd_momentum": (torch.optim.SGD, {"momentum": 0.9, "dampening": 0.2, "weight_decay": 0.01}),
    "sgd_nesterov": (torch.optim.SGD, {"momentum": 0.9, "nesterov": True, "maximize": True}),
}


def parameters(device: str, dtype: torch.dtype) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    values = [torch.randn(shape, generator=generator).to(dtype) for shape in ((5, 7), (3,), (0,), (2, 3, 4))]
    moved = [value.to(device) for value in values]
    flat = torch.randn(40, generator=generator).to(dtype).to(device)  # two parameters in one buffer, one transposed
    moved += [flat[:20].view(4, 5).t(), flat[20:]]
    return [value.detach().requires_grad_() for value in moved]


def train(make: Callable[..., torch.optim.Optimizer], device: str, dtype: torch.dtype, rate: Any, options: Any) -> Made:
    weights = parameters(device, dtype)
    # PyTorch's own fused SGD leaves bfloat16 parameters on the CPU as they are
    broken = device == "cpu" and make is torch.optim.SGD and dtype == torch.bfloat16
    optimizer = make(weights, lr=rate, fused=not broken, **options)
    generator = torch.Generator().manual_seed(4)
    for _ in range(3):
        for weight in weights:
            # the CPU's kernel takes all tensors in memory order, so the gradient is laid out as the weight is
            weight.grad = torch.empty_like(weight).copy_(torch.randn(weight.shape, generator=generator))
        optimizer.step()
    return weights, optimizer


def states(weights: list[torch.Tensor], optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    names = sorted({name for state in optimizer.state.values() for name in state} - {"step"})
    return [optimizer.state[w][name] for w in weights for name in names if optimizer.state[w].get(name) is not None]


@pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16), ids=str)
@pytest.mark.parametrize("name", CASES)
def test_fused(name: str, dtype: torch.dtype) -> None:
    make, options = CASES[name]
    expected = train(make, "cpu", dtype, 0.1, options)
    actual = run_on_device(train, make, DEVICE, dtype, 0.1, options)
    close = {"rtol": 1e-5, "atol": 1e-6}
    if dtype == torch.bfloat16:
        close = {"rtol": 1.6e-2, "atol": 0.05}  # three steps, each rounded: weights near 3 that move to 0
    assert_same([x.detach() for x in actual[0]], [x.detach() for x in expected[0]], name, **close)
    assert_same(states(*actual), states(*expected), name, strides=False, **close)


def test_dispatches_of_a_step() -> None:
    weight = torch.ones(100, device=DEVICE, requires_grad=True)
    optimizer = torch.optim.AdamW([weight], fused=True)
    weight.grad = torch.ones(100, device=DEVICE)
    optimizer.step()
    before = torch.webgpu.memory_stats()["dispatches"]
    optimizer.step()
    assert torch.webgpu.memory_stats()["dispatches"] - before == 2  # the step's count, and the update


def test_learning_rate_in_a_tensor() -> None:
    make, options = CASES["adamw"]
    expected = train(make, "cpu", torch.float32, torch.tensor(0.05), options)
    rate = torch.tensor(0.05, device=DEVICE)
    actual = run_on_device(train, make, DEVICE, torch.float32, rate, options, waits=1)  # __init__ compares it with 0
    assert_same([x.detach() for x in actual[0]], [x.detach() for x in expected[0]], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("overflowed", (0.0, 1.0))
def test_scaled_gradients(overflowed: float) -> None:
    """What GradScaler hands over: the scale is divided away, and nothing moves where a gradient overflowed."""

    def step(device: str) -> list[torch.Tensor]:
        weights = [torch.linspace(-1, 1, 9, device=device)]
        gradients = [torch.linspace(2, 3, 9, device=device)]
        moments = [torch.zeros(9, device=device) for _ in range(2)]
        torch._fused_adamw_(
            *(weights, gradients, moments[:1], moments[1:], [], [torch.ones((), device=device)]),
            lr=0.1,
            beta1=0.9,
            beta2=0.99,
            weight_decay=0.0,
            eps=1e-8,
            amsgrad=False,
            maximize=False,
            grad_scale=torch.tensor(8.0, device=device),
            found_inf=torch.tensor(overflowed, device=device),
        )
        return [*weights, *gradients, *moments]

    assert_same(run_on_device(step, DEVICE), step("cpu"), rtol=1e-5, atol=1e-6)
