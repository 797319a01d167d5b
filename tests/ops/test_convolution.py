"""Convolutions, transposed ones and their gradients against the CPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.support import (
    INTS,
    assert_same,
    assert_same_error,
    name_of,
    on_device,
    outcome,
    run_on_device,
    to_device,
)

# sums of some hundred products, in another order than the CPU's
CLOSE = {"rtol": 1e-5, "atol": 1e-4}
HALF = {torch.float16: {"rtol": 2e-3, "atol": 2e-3}, torch.bfloat16: {"rtol": 1.6e-2, "atol": 1e-2}}
LAST = {4: torch.channels_last, 5: torch.channels_last_3d}


@dataclass(frozen=True)
class Case:
    size: tuple[int, ...]  # of the input
    out: int  # channels
    kernel: tuple[int, ...]
    stride: int | tuple[int, ...] = 1
    padding: int | tuple[int, ...] | str = 0
    dilation: int | tuple[int, ...] = 1
    groups: int = 1
    transposed: bool = False
    output_padding: int | tuple[int, ...] = 0

    def __str__(self) -> str:
        sizes = "x".join(map(str, self.size)) + f"-{self.out}-" + "x".join(map(str, self.kernel))
        return f"{sizes}-s{self.stride}p{self.padding}d{self.dilation}g{self.groups}{'t' if self.transposed else ''}"

    def tensors(self) -> tuple[torch.Tensor, ...]:
        taken = self.size[-1 - len(self.kernel)]
        channels = (taken, self.out // self.groups) if self.transposed else (self.out, taken // self.groups)
        return torch.randn(self.size), torch.randn(*channels, *self.kernel), torch.randn(self.out)

    def __call__(self, *tensors: torch.Tensor) -> torch.Tensor:
        name = f"conv{'_transpose' if self.transposed else ''}{len(self.kernel)}d"
        more: dict[str, Any] = {"output_padding": self.output_padding} if self.transposed else {}
        more |= {"stride": self.stride, "padding": self.padding, "dilation": self.dilation, "groups": self.groups}
        return getattr(F, name)(*tensors, **more)


TILES = (
    Case((2, 3, 9, 7), 5, (3, 3), padding=1),
    Case((1, 40, 6, 6), 37, (3, 3), padding=1),  # a whole tile and a part of one
    Case((3, 6, 8, 5), 12, (3, 2), stride=2, padding=(1, 0), groups=2),
    Case((2, 16, 5, 9), 64, (2, 4), stride=(1, 3), dilation=(2, 1), groups=4),
    Case((1, 3, 20, 21), 8, (7, 7), stride=2, padding=3),
    Case((2, 4, 6, 6), 6, (3, 3), padding="same", dilation=2),
    Case((2, 4, 6, 6), 6, (3, 2), padding="valid"),
    Case((2, 5, 8, 8), 6, (1, 1)),
    Case((2, 5, 8, 8), 6, (1, 1), stride=2, padding=1),
    Case((3, 4, 4), 6, (3, 3), padding=1),  # without a batch
    Case((2, 6, 19), 9, (4,), stride=2, padding=1),
    Case((2, 8, 30), 8, (5,), dilation=3, groups=2),
    Case((2, 4, 5, 6, 7), 6, (2, 3, 3), padding=1),
    Case((1, 4, 7, 6, 5), 8, (3, 1, 2), stride=(2, 1, 2), padding=(1, 0, 1), dilation=(1, 2, 1), groups=2),
)
TRANSPOSED = (
    Case((2, 5, 6, 7), 4, (3, 3), padding=1, transposed=True),
    Case((2, 8, 5, 4), 12, (4, 4), stride=2, padding=1, transposed=True),
    Case((1, 6, 4, 5), 6, (2, 3), stride=(3, 2), dilation=(2, 3), groups=3, transposed=True, output_padding=(1, 1)),
    Case((1, 4, 3, 3), 34, (2, 2), stride=4, transposed=True),  # pixels no window reaches
    Case((2, 5, 8, 8), 6, (1, 1), transposed=True),
    Case((2, 4, 9), 6, (4,), stride=3, padding=2, transposed=True, output_padding=2),
    Case((1, 4, 3, 4, 3), 6, (2, 3, 2), stride=2, padding=(0, 1, 0), groups=2, transposed=True),
)
# Large enough for the kernel that takes a line of the window at once: by quads, and by elements.
LINES = (
    Case((1, 6, 20, 24), 20, (3, 3), padding=1),  # a whole tile and a part of one
    Case((2, 4, 14, 28), 12, (3, 5), padding=(1, 2)),
    Case((1, 3, 20, 20), 6, (2, 2)),
    Case((1, 3, 18, 18), 9, (3, 3), padding=1),  # not quads
    Case((1, 3, 40, 44), 10, (3, 3), stride=2, padding=1),
    Case((2, 4, 33, 31), 7, (3, 4), stride=(1, 2), padding=(0, 1), dilation=(2, 1)),
    Case((2, 8, 16, 20), 24, (3, 3), padding=1, groups=2),
    Case((1, 3, 16, 24), 8, (3, 3), padding=4),  # wider than the window
    Case((2, 6, 200), 9, (5,), padding=2),
    Case((2, 4, 4, 12, 8), 8, (2, 3, 3), padding=1),
    Case((1, 8, 20, 24), 6, (3, 3), padding=1, transposed=True),
    Case((1, 8, 20, 24), 12, (3, 4), padding=(0, 1), groups=2, transposed=True),
)
DEPTHWISE = (
    Case((2, 3, 21, 20), 6, (3, 3), padding=1, groups=3),  # quads, some beyond the end
    Case((2, 6, 9, 17), 6, (3, 3), padding=1, groups=6),
    Case((1, 4, 20, 8), 8, (3, 3), groups=4),  # two of the output for each of the input
    Case((2, 3, 7, 11), 3, (3, 3), padding=(4, 3), groups=3),  # wider than the window
    Case((2, 3, 7, 11), 3, (5, 4), padding=(4, 6), groups=3),
    Case((2, 3, 7, 11), 3, (1, 3), padding=(0, 1), groups=3),
    Case((1, 3, 9, 9), 3, (7, 7), padding=3, groups=3),
    Case((1, 4, 9, 9), 4, (3, 3), stride=2, padding=1, groups=4),
    Case((2, 3, 20), 3, (5,), padding=2, groups=3),
    Case((1, 4, 9, 19), 8, (3, 5), stride=(3, 2), padding=(1, 2), dilation=(2, 1), groups=4),
    Case((2, 3, 6, 7), 3, (3, 3), padding=1, groups=3, transposed=True),
    Case((1, 3, 6, 7), 3, (2, 5), padding=1, dilation=(3, 1), groups=3, transposed=True),
    Case((1, 3, 5, 4), 3, (3, 3), stride=2, groups=3, transposed=True),
    Case((1, 3, 3, 4, 4), 3, (3, 3, 3), padding=1, groups=3),
)


def formatted(tensor: torch.Tensor, last: bool) -> torch.Tensor:
    return tensor.to(memory_format=LAST[tensor.dim()]) if last and tensor.dim() in LAST else tensor


def check(case: Case, tensors: tuple[torch.Tensor, ...]) -> None:
    """Forward and all gradients, with their strides."""
    host = [tensor.requires_grad_() for tensor in tensors]
    device = [to_device(tensor.detach()).requires_grad_() for tensor in host]
    expected = case(*host)
    actual = run_on_device(case, *device)
    assert_same(actual, expected, str(case), **CLOSE)
    gradient = torch.randn_like(expected)
    wanted = torch.autograd.grad(expected, host, gradient)
    with on_device() as results:
        results.extend(torch.autograd.grad(actual, device, to_device(gradient)))
    for name, one, other in zip(("input", "weight", "bias"), results, wanted, strict=False):
        assert_same(one, other, f"{case}: gradient of the {name}", **CLOSE)


@pytest.mark.parametrize("case", (*TILES, *TRANSPOSED, *LINES, *DEPTHWISE), ids=str)
def test_forward_and_gradients(case: Case) -> None:
    x, weight, bias = case.tensors()
    check(case, (x, weight, bias))
    check(case, (formatted(x, True), weight))


@pytest.mark.parametrize("formats", ((False, True), (True, True)), ids=str)
def test_memory_formats(formats: tuple[bool, bool]) -> None:
    for case in (TILES[0], TILES[2], TILES[12], TRANSPOSED[1], TRANSPOSED[6], LINES[0], DEPTHWISE[0]):
        x, weight, bias = case.tensors()
        check(case, (formatted(x, formats[0]), formatted(weight, formats[1]), bias))


@pytest.mark.parametrize("dtype", HALF, ids=name_of)
def test_halves(dtype: torch.dtype) -> None:
    """Against float32 of the same numbers: the sums are of float32 here, and not always on the CPU."""
    for case in (TILES[1], TILES[7], TRANSPOSED[1], LINES[0], DEPTHWISE[0]):
        half = [tensor.to(dtype) for tensor in case.tensors()]
        exact = [tensor.float().requires_grad_() for tensor in half]
        device = [to_device(tensor).requires_grad_() for tensor in half]
        expected, actual = case(*exact), run_on_device(case, *device)
        assert_same(actual, expected.to(dtype), str(case), **HALF[dtype])
        gradient = torch.randn_like(expected).to(dtype)
        wanted = torch.autograd.grad(expected, exact, gradient.float())
        with on_device() as results:
            results.extend(torch.autograd.grad(actual, device, to_device(gradient)))
        for one, other in zip(results, wanted, strict=True):
            assert_same(one, other.to(dtype), f"{case}: gradient", **HALF[dtype])


@pytest.mark.parametrize("dtype", INTS, ids=name_of)
def test_integers(dtype: torch.dtype) -> None:
    cases = (TILES[0], TILES[2], TILES[7], TILES[12], DEPTHWISE[0])
    if dtype == torch.int64:
        cases = (*cases, TILES[3], *TRANSPOSED)
    for case in cases:
        tensors = [(tensor * 9).to(dtype) for tensor in case.tensors()]
        assert_same(run_on_device(case, *to_device(tensors)), case(*tensors), str(case))


def test_strided_operands() -> None:
    """Slices with offsets, steps and repeats; operands in one buffer."""
    case = Case((2, 4, 6, 7), 6, (3, 3), padding=1, groups=2)
    base = torch.randn(20_000)
    x = base[3:].as_strided((2, 4, 6, 7), (1000, 99, 15, 2))
    weight = base[1:].as_strided((6, 2, 3, 3), (50, 3, 1, 7))
    bias = base[5:].as_strided((6,), (3,))
    for index, tensors in enumerate(
        ((x, weight, bias), (x.expand(2, 4, 6, 7), weight[:, :1].expand(6, 2, 3, 3), bias))
    ):
        expected = case(*tensors)
        assert_same(run_on_device(case, *to_device(tensors)), expected, str(index), **CLOSE)
        gradient = torch.randn(1).expand(expected.shape)
        call = torch.ops.aten.convolution_backward
        rest = ([6], [1, 1], [1, 1], [1, 1], False, [0, 0], 2, [True, True, True])
        wanted = call(gradient, *tensors[:2], *rest)
        actual = run_on_device(call, *to_device((gradient, *tensors[:2])), *rest)
        assert_same(actual, wanted, f"gradients {index}", strides=False, **CLOSE)


def test_operands_of_one_buffer() -> None:
    base = torch.randn(4000)
    for case in (DEPTHWISE[0], TILES[0]):
        tensors, first = [], 0
        for size in (tensor.shape for tensor in case.tensors()):
            tensors.append(base[first : first + size.numel()].view(size))
            first += -(-size.numel() // 4) * 4
        assert_same(run_on_device(case, *to_device(tuple(tensors))), case(*tensors), str(case), **CLOSE)


def test_only_what_is_asked_for() -> None:
    x, weight, _ = TILES[0].tensors()
    gradient = torch.randn(2, 5, 9, 7)
    rest = ([5], [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
    for mask in ([True, False, False], [False, True, False], [False, False, True]):
        wanted = torch.ops.aten.convolution_backward(gradient, x, weight, *rest, mask)
        actual = run_on_device(torch.ops.aten.convolution_backward, *to_device((gradient, x, weight)), *rest, mask)
        for asked, one, other in zip(mask, actual, wanted, strict=True):
            assert (one is not None) == asked
            if asked:
                assert_same(one, other, str(mask), **CLOSE)


def test_long_sums_keep_their_digits() -> None:
    """The weight's gradient is a sum over all pixels: split, so that float32 has enough digits for it."""
    for groups in (1, 4):
        x, gradient = torch.rand(4, 4, 96, 96), torch.rand(4, 4, 96, 96)
        weight = torch.zeros(4, 4 // groups, 3, 3)
        rest = (None, [1, 1], [1, 1], [1, 1], False, [0, 0], groups, [False, True, False])
        exact = torch.ops.aten.convolution_backward(gradient.double(), x.double(), weight.double(), *rest)[1]
        actual = run_on_device(torch.ops.aten.convolution_backward, *to_device((gradient, x, weight)), *rest)[1]
        torch.testing.assert_close(actual.cpu().double(), exact, rtol=2e-6, atol=0)


def test_gradient_of_a_gradient() -> None:
    for case in (TILES[2], TRANSPOSED[1], DEPTHWISE[0]):
        found = []
        tensors = case.tensors()
        for move in (lambda x: x, to_device):
            x, weight, bias = (move(tensor).detach().requires_grad_() for tensor in tensors)
            first = torch.autograd.grad(case(x, weight, bias).square().sum(), (x, weight), create_graph=True)
            loss = sum(gradient.square().mean() for gradient in first)
            found.append(torch.autograd.grad(loss, (x, weight, bias)))
        scale = max(gradient.abs().max().item() for gradient in found[0])
        assert_same(found[1], found[0], str(case), rtol=1e-4, atol=1e-6 * scale)


def test_empty() -> None:
    for shape, weight in (((0, 3, 5, 5), (4, 3, 3, 3)), ((0, 3, 5), (4, 3, 3)), ((2, 3, 5, 5), (0, 3, 3, 3))):
        case = Case(shape, weight[0], weight[2:])
        tensors = [tensor.requires_grad_() for tensor in case.tensors()[:2]]
        device = [to_device(tensor.detach()).requires_grad_() for tensor in tensors]
        expected, error = outcome(case, *tensors)
        actual, raised = outcome(case, *device)
        assert_same_error(raised, error, str(case))
        if error is None:
            assert_same(actual, expected)
            wanted = torch.autograd.grad(expected.sum(), tensors)
            assert_same(torch.autograd.grad(actual.sum(), device), wanted)


def test_special_values() -> None:
    """A NaN outside of the window does not count, one inside does; padding is zero, not the edge."""
    x = torch.randn(1, 2, 8, 8)
    x[0, 0, 0, 0] = float("nan")
    x[0, 1, 7, 7] = float("inf")
    for groups in (1, 2):
        weight = torch.rand(6, 2 // groups, 3, 3) + 1
        case = Case((1, 2, 8, 8), 6, (3, 3), padding=1, groups=groups)
        assert_same(run_on_device(case, *to_device((x, weight))), case(x, weight), **CLOSE)


MODULES: tuple[tuple[Callable[[], nn.Module], tuple[int, ...]], ...] = (
    (lambda: nn.Conv1d(4, 6, 3, padding=1, padding_mode="circular"), (2, 4, 9)),
    (lambda: nn.Conv2d(4, 6, 3, padding="same", padding_mode="reflect"), (2, 4, 7, 6)),
    (lambda: nn.LazyConv2d(6, 3, stride=2), (2, 4, 7, 6)),
    (lambda: nn.Conv3d(2, 4, 2, bias=False), (1, 2, 4, 5, 3)),
    (lambda: nn.ConvTranspose1d(4, 6, 3, stride=2), (2, 4, 9)),
    (lambda: nn.LazyConvTranspose2d(6, 4, stride=2, padding=1), (2, 4, 5, 5)),
    (lambda: nn.ConvTranspose3d(2, 4, 2, stride=2), (1, 2, 3, 3, 3)),
)


@pytest.mark.parametrize("index", range(len(MODULES)))
def test_modules(index: int) -> None:
    make, size = MODULES[index]
    model, x = make(), torch.randn(size)
    expected = model(x)
    model.to("webgpu")
    with on_device() as results:
        results.append(model(to_device(x)))
        results[0].square().sum().backward()
    assert_same(results[0], expected, **CLOSE)
    assert all(parameter.grad is not None for parameter in model.parameters())


ERRORS: tuple[Callable[[Callable[[torch.Tensor], torch.Tensor]], Any], ...] = (
    lambda to: F.conv2d(to(torch.rand(1, 3, 4, 4)), to(torch.rand(2, 3, 5, 5))),
    lambda to: F.conv2d(to(torch.rand(1, 3, 4, 4)), to(torch.rand(2, 2, 3, 3))),
    lambda to: F.conv2d(to(torch.rand(1, 4, 4, 4)), to(torch.rand(3, 2, 3, 3)), groups=2),
    lambda to: F.conv2d(to(torch.rand(1, 3, 4, 4)), to(torch.rand(2, 3, 3, 3)), to(torch.rand(3))),
    lambda to: F.conv2d(to(torch.rand(1, 3, 4, 4)), to(torch.rand(2, 3, 3, 3)), stride=0),
    lambda to: F.conv2d(to(torch.rand(1, 3, 4, 4)), to(torch.rand(2, 3, 3, 3)), padding=-1),
    lambda to: F.conv2d(to(torch.rand(1, 3, 4, 4)), to(torch.rand(2, 3, 3, 3)), padding="same", stride=2),
    lambda to: F.conv2d(to(torch.rand(3, 4)), to(torch.rand(2, 3, 3, 3))),
    lambda to: F.conv1d(to(torch.rand(1, 3, 4)), to(torch.rand(2, 3, 3).half())),
    lambda to: F.conv2d(to(torch.rand(1, 3, 4, 4)), to(torch.rand(2, 3, 3, 3).half())),
    lambda to: F.conv2d(to(torch.rand(1, 3, 4, 4)), to(torch.rand(2, 3, 3, 3)), to(torch.rand(2).half())),
    lambda to: F.conv2d(to(torch.ones(1, 3, 4, 4, dtype=torch.bool)), to(torch.ones(2, 3, 3, 3, dtype=torch.bool))),
    lambda to: F.conv2d(to(torch.ones(1, 3, 9, 9).int()), to(torch.ones(2, 3, 3, 3).int()), dilation=2),
    lambda to: F.conv_transpose2d(to(torch.ones(1, 3, 4, 4).int()), to(torch.ones(3, 2, 3, 3).int())),
    lambda to: F.conv_transpose2d(to(torch.rand(1, 3, 4, 4)), to(torch.rand(3, 2, 3, 3)), output_padding=1),
    lambda to: F.conv_transpose1d(to(torch.rand(1, 3, 4)), to(torch.rand(3, 2, 3)), stride=2, output_padding=2),
    lambda to: F.conv_transpose3d(to(torch.rand(1, 3, 4, 4)), to(torch.rand(3, 2, 3, 3))),
)


@pytest.mark.parametrize("index", range(len(ERRORS)))
def test_errors(index: int) -> None:
    _, wanted = outcome(ERRORS[index], lambda x: x)
    _, error = outcome(ERRORS[index], to_device)
    assert wanted is not None
    assert_same_error(error, wanted)
