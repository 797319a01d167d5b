"""Whole programs: optimizers and schedulers, GradScaler, control flow, buffers that change, export."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch._dynamo.utils import counters
from torch.utils.checkpoint import checkpoint

from tests.compile.support import compiled, count
from tests.support import DEVICE, assert_same, on_device, to_device


def graphs() -> int:
    return counters["stats"]["unique_graphs"]


def small_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4))


Make = Callable[[Any, Any], torch.optim.Optimizer]
OPTIMIZERS: dict[str, Make] = {
    "Adam": lambda p, lr: torch.optim.Adam(p, lr=lr, weight_decay=0.01),
    "AdamW, AMSGrad": lambda p, lr: torch.optim.AdamW(p, lr=lr, amsgrad=True),
    "SGD, momentum": lambda p, lr: torch.optim.SGD(p, lr=lr, momentum=0.9, nesterov=True, weight_decay=0.01),
}


def train(model: nn.Module, make: Make, rate: Any, steps: int, compile_it: bool) -> tuple[list[float], int]:
    """Takes steps whose rate a scheduler changes; tells the rates, and how many graphs were compiled."""
    optimizer = make(model.parameters(), rate)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    place = next(model.parameters()).device
    step = optimizer.step
    if compile_it:
        torch._dynamo.reset()
        step = torch.compile(optimizer.step, backend="webgpu")  # type: ignore[assignment]
    before, rates = graphs(), []
    for i in range(steps):
        optimizer.zero_grad()
        x = torch.randn(6, 8, generator=torch.Generator().manual_seed(i)).to(place)
        model(x).square().mean().backward()
        step()
        scheduler.step()
        rates.append(float(optimizer.param_groups[0]["lr"]))
    return rates, graphs() - before


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizer_with_a_rate_that_a_scheduler_changes(name: str) -> None:
    """The rate is a tensor: one graph is for all steps but the first, which makes the optimizer's state."""
    make = OPTIMIZERS[name]
    model = small_model()
    moved = copy.deepcopy(model).to(DEVICE)
    expected, _ = train(model, make, torch.tensor(0.02), 5, compile_it=False)
    actual, compilations = train(moved, make, torch.tensor(0.02, device=DEVICE), 5, compile_it=True)
    assert actual == pytest.approx(expected)
    assert compilations <= 2
    for one, other in zip(moved.parameters(), model.parameters(), strict=True):
        assert_same(one, other, rtol=1e-3, atol=1e-5)


def test_autocast_and_grad_scaler() -> None:
    """Training steps in float16. The first loss overflows once it is scaled, in eager and in fused kernels, which round
    less often: that step is left out, and the scale falls."""
    torch.manual_seed(0)
    models = [m.to(DEVICE) for m in (small_model(), small_model())]
    call = compiled(models[1])
    losses: list[list[float]] = []
    scales = []
    for model, run in zip(models, (models[0], call), strict=True):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.005)
        scaler = torch.amp.GradScaler(DEVICE, init_scale=2.0**127, backoff_factor=2.0**-117, growth_interval=3)
        of_model = []
        for i in range(8):
            x = torch.randn(6, 8, generator=torch.Generator().manual_seed(i)).to(DEVICE)
            optimizer.zero_grad()
            with torch.autocast(DEVICE, dtype=torch.float16):
                loss = run(x).float().square().sum()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            of_model.append(loss.item())
        losses.append(of_model)
        scales.append(scaler.get_scale())
    assert scales == [2.0**12] * 2, "one step overflowed, and twice three did not"
    assert losses[0][0] > 2
    torch.testing.assert_close(torch.tensor(losses[1]), torch.tensor(losses[0]), rtol=2e-2, atol=1e-3)


def test_condition() -> None:
    """torch.cond on a value of the device: both branches are compiled, and the host asks which one."""

    def function(x: Tensor, y: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, lambda a, b: a @ b + 1, lambda a, b: (a - b).relu(), (x, y)) * 2

    call = compiled(function)
    for x in (torch.ones(4, 4), -torch.ones(4, 4), torch.ones(4, 4)):
        y = torch.arange(16.0).view(4, 4)
        assert_same(call(x.to(DEVICE), y.to(DEVICE)), function(x, y))


def test_loop_of_the_host() -> None:
    """A loop whose end the host knows is unrolled; one that reads a value breaks the graph, and is right."""

    def function(x: Tensor, times: int) -> Tensor:
        for _ in range(times):
            x = torch.tanh(x) + 0.5
        while x.max() > 1:
            x = x * 0.5
        return x

    torch._dynamo.reset()
    call = torch.compile(function, backend="webgpu")
    x = torch.randn(20)
    for times in (1, 3):
        assert_same(call(x.to(DEVICE), times), function(x, times))


def test_batch_norm_trains() -> None:
    """Running statistics are buffers that a call changes; evaluation uses them."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4, momentum=0.3), nn.ReLU(), nn.BatchNorm2d(4))
    moved = copy.deepcopy(model).to(DEVICE)
    call = compiled(moved)
    for i in range(3):
        x = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(i))
        with on_device() as results:
            results.append(call(x.to(DEVICE)))
            results[0].square().mean().backward()
        expected = model(x)
        expected.square().mean().backward()
        assert_same(results[0], expected, rtol=1e-4, atol=1e-5, strides=False)
    for (name, one), other in zip(moved.named_buffers(), model.buffers(), strict=True):
        assert_same(one, other, name, rtol=1e-5, atol=1e-6)
    for (name, one), other in zip(moved.named_parameters(), model.parameters(), strict=True):
        assert_same(one.grad, other.grad, name, rtol=1e-3, atol=1e-5, strides=False)
    model.eval()
    moved.eval()
    assert_same(compiled(moved)(x.to(DEVICE)), model(x), rtol=1e-4, atol=1e-5, strides=False)


def test_buffer_that_counts() -> None:
    class Counter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
            self.register_buffer("total", torch.zeros(4))

        def forward(self, x: Tensor) -> Tensor:
            self.calls += 1
            self.total.add_(x)
            return x * self.calls + self.total

    model, moved = Counter(), Counter().to(DEVICE)
    call = compiled(moved)
    for i in range(4):
        x = torch.arange(4.0) + i
        assert_same(call(x.to(DEVICE)), model(x))
    assert_same(moved.calls, model.calls)
    assert_same(moved.total, model.total)


def test_nested_compiled_functions() -> None:
    inner = torch.compile(lambda x: F.softmax(x * 2, -1), backend="webgpu")

    def outer(x: Tensor) -> Tensor:
        return inner(x + 1) * inner(x - 1)

    def plain(x: Tensor) -> Tensor:
        return F.softmax((x + 1) * 2, -1) * F.softmax((x - 1) * 2, -1)

    call = compiled(outer)
    x = torch.randn(5, 12)
    assert_same(call(x.to(DEVICE)), plain(x), rtol=1e-5, atol=1e-6)
    assert count(call, x.to(DEVICE)) == 1, "what is inside is compiled with what is around it"
    assert_same(inner(x.to(DEVICE)), F.softmax(x * 2, -1), rtol=1e-5, atol=1e-6)


def test_checkpointed_blocks_of_a_compiled_model() -> None:
    """Blocks that are computed again in the backward, with the checkpoint inside the graph."""

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.LayerNorm(8)) for _ in range(3))

        def forward(self, x: Tensor) -> Tensor:
            for block in self.blocks:
                x = checkpoint(block, x, use_reentrant=False)
            return x

    torch.manual_seed(0)
    model = Model()
    moved = copy.deepcopy(model).to(DEVICE)
    call = compiled(moved)
    x = torch.randn(5, 8)
    for run, one in ((call, x.to(DEVICE)), (model, x)):
        run(one).sin().sum().backward()
    for one, other in zip(moved.parameters(), model.parameters(), strict=True):
        assert_same(one.grad, other.grad, rtol=1e-3, atol=1e-5, strides=False)


def test_export_then_compile() -> None:
    """A program that was exported on the CPU or on the device, saved and loaded, and then compiled."""
    model = small_model()
    x = torch.randn(5, 8)
    expected = model(x)
    for place in ("cpu", DEVICE):
        batch = torch.export.Dim("batch", min=2, max=64)
        program = torch.export.export(model.to(place), (x.to(place),), dynamic_shapes=({0: batch},))
        file = io.BytesIO()
        torch.export.save(program, file)
        file.seek(0)
        call = compiled(torch.export.load(file).module().to(DEVICE))
        for rows in (5, 9):
            given = torch.cat((x, x))[:rows]
            with on_device() as results:
                results.append(call(given.to(DEVICE)))
            assert_same(results[0], torch.cat((expected, expected))[:rows].detach(), rtol=1e-4, atol=1e-5)


def test_numbers_and_tensors_of_the_cpu_in_one_function() -> None:
    """Numbers of the host as Python's, as tensors, as results of the host's own arithmetic."""

    def function(x: Tensor, rate: Tensor, power: int, flag: bool) -> Tensor:
        scale = rate * 2 + 1  # on the CPU
        y = x * scale if flag else x / scale
        return y**power + torch.tensor(0.25, dtype=torch.float64)

    call = compiled(function, dynamic=False)
    x = torch.randn(12)
    for rate, power, flag in ((0.5, 2, True), (0.75, 2, True), (0.5, 3, False)):
        given = torch.tensor(rate)
        assert_same(call(x.to(DEVICE), given, power, flag), function(x, given, power, flag), rtol=1e-5, atol=1e-6)


def test_moved_inside() -> None:
    """A tensor that the function moves to the device, and a result that it moves away."""
    call = compiled(lambda x, y: ((x.to(DEVICE) + y) * 2).cpu() + 1)
    x, y = torch.randn(7), torch.randn(7)
    for _ in range(2):
        result = call(x, y.to(DEVICE))
        assert result.device.type == "cpu"
        torch.testing.assert_close(result, (x + y) * 2 + 1)


def test_state_of_an_optimizer_is_saved_and_loaded() -> None:
    """A compiled step goes on where an uncompiled one stopped."""
    model = small_model().to(DEVICE)
    twin = copy.deepcopy(model)
    gradients = to_device([torch.randn(p.shape) for p in model.parameters()])
    optimizers = [torch.optim.AdamW(m.parameters(), lr=0.01) for m in (model, twin)]

    def step(which: int, function: Callable[[], Any]) -> None:
        for p, g in zip((model, twin)[which].parameters(), gradients, strict=True):
            p.grad = g.clone()
        function()

    step(0, optimizers[0].step)
    step(1, optimizers[1].step)
    optimizers[1].load_state_dict(copy.deepcopy(optimizers[0].state_dict()))
    torch._dynamo.reset()
    run = torch.compile(optimizers[1].step, backend="webgpu")
    for _ in range(2):
        step(0, optimizers[0].step)
        step(1, run)
    for one, other in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)
