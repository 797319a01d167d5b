"""LSTM, GRU and RNN, their cells and packed sequences against the CPU, with gradients of everything that has one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence
from torch.utils._pytree import tree_leaves, tree_map

from tests.support import DEVICE, FLOATS, assert_same, name_of, on_device, to_device

CLOSE = {"rtol": 1e-5, "atol": 2e-5}
HALF = {torch.float16: {"rtol": 1e-2, "atol": 5e-3}, torch.bfloat16: {"rtol": 5e-2, "atol": 4e-2}}


def tensors(values: Any) -> list[torch.Tensor]:
    return [x for x in tree_leaves(values) if isinstance(x, torch.Tensor)]


def leaves(values: Any, device: str) -> Any:
    """Copies that gather gradients."""
    return tree_map(lambda x: x.detach().clone().to(device).requires_grad_(), values)


def check(
    module: nn.Module,
    *args: Any,
    run: Callable[..., Any] | None = None,
    close: dict[str, float] = CLOSE,
    waits: int = 0,
) -> None:
    """Results, and the gradients of arguments and parameters."""
    call = run or (lambda module, *args: module(*args))
    host, device = module, copy.deepcopy(module).to(DEVICE)
    given, moved = leaves(args, "cpu"), leaves(args, DEVICE)
    expected = tensors(call(host, *given))
    with on_device(waits=waits) as results:
        actual = tensors(call(device, *moved))
        results.extend(actual)
        seeds = [
            torch.randn(x.shape, generator=torch.Generator().manual_seed(i)).to(x.dtype) for i, x in enumerate(expected)
        ]
        wanted = torch.autograd.grad(expected, [*tensors(given), *host.parameters()], seeds, allow_unused=True)
        found = torch.autograd.grad(
            actual, [*tensors(moved), *device.parameters()], to_device(seeds), allow_unused=True
        )
    assert_same(actual, expected, "result", strides=False, **close)
    scale = max(1.0, *(float(x.abs().max()) for x in wanted if x is not None))
    for index, (one, other) in enumerate(zip(found, wanted, strict=True)):
        if other is None:
            assert one is None
            continue
        assert_same(one, other, f"gradient {index}", strides=False, rtol=close["rtol"] * 10, atol=close["atol"] * scale)


KINDS = {"LSTM": nn.LSTM, "GRU": nn.GRU, "RNN": nn.RNN}
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "two layers": {"num_layers": 2},
    "both directions": {"bidirectional": True, "num_layers": 2},
    "batch first": {"batch_first": True},
    "no bias": {"bias": False},
}


def states(kind: str, module: Any, batch: int) -> Any:
    count = module.num_layers * (2 if module.bidirectional else 1)
    hidden = torch.randn(count, batch, module.proj_size or module.hidden_size)
    return (hidden, torch.randn(count, batch, module.hidden_size)) if kind == "LSTM" else hidden


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_sequences(kind: str, options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    module = KINDS[kind](5, 7, **options)
    x = torch.randn(3, 4, 5)
    check(module, x)
    check(module, x, states(kind, module, 3 if module.batch_first else 4))


def test_projections() -> None:
    torch.manual_seed(0)
    for both in (False, True):
        module = nn.LSTM(5, 8, proj_size=3, num_layers=2, bidirectional=both)
        check(module, torch.randn(3, 4, 5), states("LSTM", module, 4))


def test_relu_and_unbatched() -> None:
    torch.manual_seed(0)
    check(nn.RNN(5, 7, nonlinearity="relu"), torch.randn(3, 4, 5))
    for kind in KINDS.values():
        check(kind(5, 7), torch.randn(6, 5))


@pytest.mark.parametrize("kind", KINDS)
def test_packed_sequences(kind: str) -> None:
    torch.manual_seed(0)
    module = KINDS[kind](5, 6, bidirectional=True)
    lengths = torch.tensor([2, 4, 1])

    def run(module: nn.Module, x: torch.Tensor) -> Any:
        packed = pack_padded_sequence(x, lengths, enforce_sorted=False)
        result, state = module(packed)
        assert isinstance(result, PackedSequence)
        padded, sizes = pad_packed_sequence(result, padding_value=-1.0, total_length=5)
        assert sizes.tolist() == lengths.tolist()
        return padded, state

    check(module, torch.randn(4, 3, 5), run=run, waits=1)  # PyTorch takes the order of the lengths to the host


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("cell", [nn.LSTMCell, nn.GRUCell, nn.RNNCell])
def test_cells(cell: Callable[..., nn.Module], bias: bool) -> None:
    torch.manual_seed(0)
    module = cell(5, 8, bias=bias)
    check(module, torch.randn(4, 5))
    check(module, torch.randn(5))
    state = torch.randn(4, 8)
    check(module, torch.randn(4, 5), (state, torch.randn(4, 8)) if cell is nn.LSTMCell else state)


@pytest.mark.parametrize("dtype", FLOATS[1:], ids=name_of)
@pytest.mark.parametrize("kind", KINDS)
def test_half(kind: str, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    check(KINDS[kind](6, 7).to(dtype), torch.randn(3, 4, 6).to(dtype), close=HALF[dtype])


@pytest.mark.parametrize("kind", [*KINDS, "LSTMCell", "GRUCell"])
def test_float64(kind: str) -> None:
    """The arithmetic runs on the CPU, to which a whole cell is unknown."""
    module = getattr(nn, kind)(3, 4).double()
    there = copy.deepcopy(module).to(DEVICE)
    x = torch.randn(2, 3, dtype=torch.float64) if kind.endswith("Cell") else torch.randn(5, 2, 3, dtype=torch.float64)
    before = torch.webgpu.set_fallback_mode("quiet")
    try:
        results = [tensors(module(x)), tensors(there(x.to(DEVICE)))]
        for one in results:
            sum((y * y).sum() for y in one).backward()
    finally:
        torch.webgpu.set_fallback_mode(before)
    exact = {"rtol": 1e-12, "atol": 1e-12}
    assert_same(results[1], results[0], kind, strides=False, **exact)
    for one, other in zip(there.parameters(), module.parameters(), strict=True):
        assert_same(one.grad, other.grad, kind, strides=False, **exact)


def test_second_derivative() -> None:
    """PyTorch differentiates the backward of a cell by itself: only its parts must be there."""
    torch.manual_seed(0)
    for kind in (nn.LSTMCell, nn.GRUCell):
        host = kind(3, 4)
        device = copy.deepcopy(host).to(DEVICE)
        results = []
        for module, place in ((host, "cpu"), (device, DEVICE)):
            x = torch.linspace(-1, 1, 6).view(2, 3).to(place).requires_grad_()
            out = tensors(module(x))[0]
            (first,) = torch.autograd.grad(out.pow(2).sum(), x, create_graph=True)
            results.append(torch.autograd.grad(first.pow(2).sum(), x)[0])
        assert_same(results[1], results[0], kind.__name__, strides=False, rtol=1e-4, atol=1e-5)


def test_last_cell_alone() -> None:
    """A loss of the cell's state only: the gradient of the hidden one is not there."""
    torch.manual_seed(0)
    check(nn.LSTM(5, 7), torch.randn(3, 4, 5), run=lambda module, x: module(x)[1][1])
    check(nn.LSTM(5, 7), torch.randn(3, 4, 5), run=lambda module, x: module(x)[0])


MODULES: dict[str, Callable[[], nn.Module]] = {
    "LSTM": lambda: nn.LSTM(6, 8),
    "GRU": lambda: nn.GRU(6, 8),
    "RNN": lambda: nn.RNN(6, 8),
    "ReLU": lambda: nn.RNN(6, 8, nonlinearity="relu"),
}


def dispatches_of(call: Callable[[], Any]) -> int:
    before = torch.webgpu.memory_stats()["dispatches"]
    call()
    return torch.webgpu.memory_stats()["dispatches"] - before


@pytest.mark.parametrize("name", MODULES)
def test_dispatches_per_step(name: str) -> None:
    """The inputs of all steps are multiplied at once: two launches for each further step, there and back."""
    module = MODULES[name]().to(DEVICE)

    def there(steps: int) -> torch.Tensor:
        return module(torch.ones(steps, 3, 6, device=DEVICE))[0]

    def back(steps: int) -> Callable[[], Any]:
        out = there(steps)
        grad = torch.ones_like(out)
        return lambda: torch.autograd.grad(out, list(module.parameters()), grad)

    forward = {steps: dispatches_of(lambda: there(steps)) for steps in (8, 24)}  # noqa: B023
    backward = {steps: dispatches_of(back(steps)) for steps in (8, 24)}
    most = 1 if name in ("RNN", "ReLU") else 2
    assert forward[24] - forward[8] == 16 * most
    assert backward[24] - backward[8] == 16 * 2
    assert forward[8] <= 8 * most + 9


@pytest.mark.parametrize("name", MODULES)
def test_second_derivative_of_layers(name: str) -> None:
    torch.manual_seed(0)
    host = MODULES[name]()
    results = []
    for module, place in ((host, "cpu"), (copy.deepcopy(host).to(DEVICE), DEVICE)):
        x = torch.linspace(-1, 1, 36).view(3, 2, 6).to(place).requires_grad_()
        first = torch.autograd.grad(module(x)[0].pow(2).sum(), [x, *module.parameters()], create_graph=True)
        loss = sum(gradient.pow(2).sum() for gradient in first)
        results.append(torch.autograd.grad(loss, [x, *module.parameters()], allow_unused=True))
    for one, other in zip(results[1], results[0], strict=True):
        assert_same(one, other, strides=False, rtol=1e-3, atol=1e-4)


def test_some_gradients_and_one_step() -> None:
    torch.manual_seed(0)
    for name, make in MODULES.items():
        host = make()
        for frozen in range(4):
            for index, parameter in enumerate(host.parameters()):
                parameter.requires_grad_(index != frozen)
            device = copy.deepcopy(host).to(DEVICE)
            x = torch.randn(1 + frozen, 2, 6)
            for module, place in ((host, "cpu"), (device, DEVICE)):
                module(x.to(place))[0].square().sum().backward()
            for one, other in zip(device.parameters(), host.parameters(), strict=True):
                if other.grad is None:
                    assert one.grad is None, name
                else:
                    assert_same(one.grad, other.grad, f"{name}, {frozen}", strides=False, rtol=1e-4, atol=1e-4)
                    other.grad = None


def test_dropout_between_layers() -> None:
    module = nn.LSTM(6, 8, num_layers=3, dropout=0.5).to(DEVICE)
    x = torch.randn(5, 2, 6, device=DEVICE)
    torch.manual_seed(3)
    first = module(x)[0]
    assert not torch.equal(module(x)[0], first)
    torch.manual_seed(3)
    assert torch.equal(module(x)[0], first)
    module.eval()
    assert torch.equal(module(x)[0], module(x)[0])


class Outer(nn.Module):
    """A script takes nn.LSTM, which has two forwards, only inside of another module."""

    def __init__(self, inner: nn.LSTM) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x)[0]


def test_what_does_not_suit_is_pytorchs() -> None:
    """Errors, scripts, transforms and other devices."""
    module = nn.LSTM(6, 8)
    assert module(torch.zeros(2, 3, 6))[0].device.type == "cpu"
    there = copy.deepcopy(module).to(DEVICE)
    x = torch.randn(2, 3, 6)
    expected = module(x)
    assert_same(torch.jit.script(Outer(there))(x.to(DEVICE)), expected[0], strides=False, **CLOSE)
    with pytest.raises(RuntimeError, match=r"input\.size"):
        there(torch.zeros(2, 3, 5, device=DEVICE))
    with pytest.raises(RuntimeError, match=r"same device|on cpu"):
        there(x)
    with pytest.raises(RuntimeError):
        torch.nn.modules.rnn._VF.lstm(x.to(DEVICE), (), [], True, 1, 0.0, False, False, False)
    tangent = torch.randn(2, 3, 6)
    plain, moved = nn.RNN(6, 8), nn.RNN(6, 8).to(DEVICE)
    moved.load_state_dict(plain.state_dict())
    wanted = torch.func.jvp(lambda v: plain(v)[0], (x,), (tangent,))
    found = torch.func.jvp(lambda v: moved(v)[0], (x.to(DEVICE),), (tangent.to(DEVICE),))
    for one, other in zip(found, wanted, strict=True):
        assert_same(one, other, strides=False, **CLOSE)
