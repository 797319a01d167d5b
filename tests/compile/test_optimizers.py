"""Compiled steps of optimizers over many parameters, which are gathered in segments: what changes between two steps."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.compile.support import count
from tests.support import DEVICE, assert_same, on_device

SHAPES = [(3, 8), (5,), (40,), (3, 8), (1,), (7, 3), (40,), (5,), (64, 33), (3, 8)]
Make = Callable[..., torch.optim.Optimizer]
OPTIMIZERS: dict[str, Make] = {
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.05),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.05, weight_decay=0.01, amsgrad=True),
    "SGD": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=0.01),
}


def randn(shape: tuple[int, ...], seed: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


class Training:
    """An optimizer of the device whose step is compiled, beside the same one of the CPU."""

    def __init__(self, make: Make, shapes: list[tuple[int, ...]], dtypes: tuple[torch.dtype, ...] = (torch.float32,)):
        torch._dynamo.reset()
        values = [randn(shape, i, dtypes[i % len(dtypes)]) for i, shape in enumerate(shapes)]
        self.expected = [nn.Parameter(value) for value in values]
        self.found = [nn.Parameter(value.to(DEVICE)) for value in values]
        self.optimizers = make(self.expected), make(self.found)
        self.step_on_device = torch.compile(self.optimizers[1].step, backend="webgpu")
        self.seed = 100

    def set_gradients(self, keep: bool) -> None:
        """New values, in the gradients' memory if told to keep it."""
        self.seed += 100
        for i, (one, other) in enumerate(zip(self.expected, self.found, strict=True)):
            value = randn(tuple(one.shape), self.seed + i, one.dtype) * (i + 1)
            one.grad = value
            if keep and other.grad is not None:
                other.grad.copy_(value)
            else:
                other.grad = value.to(DEVICE)

    def step(self, keep: bool = True) -> None:
        self.set_gradients(keep)
        self.optimizers[0].step()
        self.step_on_device()

    def check(self, rtol: float = 1e-4, atol: float = 1e-5) -> None:
        for one, other in zip(self.found, self.expected, strict=True):
            assert_same(one.detach(), other.detach(), rtol=rtol, atol=atol)

    def count(self, keep: bool) -> int:
        self.set_gradients(keep)
        self.optimizers[0].step()
        return count(self.step_on_device)


@pytest.mark.parametrize("keep", [True, False], ids=["kept", "new"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps(name: str, keep: bool) -> None:
    training = Training(OPTIMIZERS[name], SHAPES)
    for _ in range(6):
        training.step(keep)
        training.check()
    with on_device():
        training.step_on_device()


def test_steps_of_several_dtypes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bits as from launches that stay apart. Words, quads and halves are written in a launch each."""

    def trained(fuses: str) -> tuple[Training, int]:
        monkeypatch.setenv("TORCH_WEBGPU_HORIZONTAL", fuses)
        training = Training(OPTIMIZERS["SGD"], SHAPES * 2, (torch.float32, torch.float16, torch.bfloat16))
        for _ in range(5):
            training.step()
        return training, training.count(keep=True)

    (apart, _), (together, launches) = trained("0"), trained("1")
    for one, other in zip(together.found, apart.found, strict=True):
        assert_same(one.detach(), other.detach().cpu(), exact=True)
    assert launches <= 3


def bindings() -> int:
    return min(32, int(torch.webgpu.get_device_properties().limits["maxStorageBuffersPerShaderStage"]))


@pytest.mark.once
def test_what_is_replaced_between_steps() -> None:
    """Memory that a replayed launch expects in a segment, and that was exchanged."""
    training = Training(OPTIMIZERS["AdamW"], [(3, 8), (40,)] * 6)
    for _ in range(3):
        training.step()
    few = training.count(keep=True)
    held = [parameter.data for parameter in training.found]
    before = [parameter.detach().cpu() for parameter in training.found]
    for i, (one, other) in enumerate(zip(training.expected, training.found, strict=True)):
        if i % 2 == 0:
            one.data = randn(tuple(one.shape), 7 + i)
            other.data = one.detach().to(DEVICE)
    training.step()
    training.check()
    for i, (old, value) in enumerate(zip(held, before, strict=True)):
        if i % 2 == 0:
            assert_same(old, value)
    states = [copy.deepcopy(optimizer.state_dict()) for optimizer in training.optimizers]
    for _ in range(2):
        training.step()
    for optimizer, state in zip(training.optimizers, states, strict=True):
        optimizer.load_state_dict(state)
    for _ in range(3):
        training.step()
        training.check()
    assert training.count(keep=True) == few
    for _ in range(6):  # gradients that are new each time are bound one by one from some time on
        training.step(keep=False)
        training.check()
    # An adapter of many bindings takes them beside the segments, in the same launch.
    assert few <= training.count(keep=False) <= few + math.ceil(12 / (bindings() - 1))


def test_exchanged_parameters() -> None:
    """Two parameters swap their memory: both are in segments, and in the wrong places."""
    training = Training(OPTIMIZERS["SGD"], [(3, 8)] * 12)
    for _ in range(3):
        training.step()
    for parameters in (training.expected, training.found):
        first, last = parameters[0], parameters[-1]
        first.data, last.data = last.data, first.data
    for _ in range(2):
        training.step()
        training.check()


def test_views_of_one_buffer() -> None:
    """Parameters that share memory, and another input that is a view of one."""

    def step(parameters: list[Tensor], gradients: list[Tensor], view: Tensor) -> Tensor:
        torch._foreach_mul_(parameters, 0.5)
        torch._foreach_add_(parameters, gradients, alpha=-0.1)
        return view * 2

    torch._dynamo.reset()
    compiled = torch.compile(step, backend="webgpu")
    whole = [randn((48,), i) for i in range(14)]
    gradients = [randn((24,), 50 + i) for i in range(28)]
    moved, moved_gradients = [x.to(DEVICE) for x in whole], [x.to(DEVICE) for x in gradients]
    for _ in range(4):
        results = []
        for tensors, grads, run in ((whole, gradients, step), (moved, moved_gradients, compiled)):
            halves: list[Any] = [half for x in tensors for half in x.chunk(2)]
            results.append(run(halves, grads, tensors[0][12:36]))
        assert_same(results[1], results[0], rtol=1e-5, atol=1e-6)
        for one, other in zip(moved, whole, strict=True):
            assert_same(one, other, rtol=1e-5, atol=1e-6)
