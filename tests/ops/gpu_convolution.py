"""The tiles of convolutions for GPUs, forced on this adapter; test_gpu_kernels runs this file as on a GPU."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from tests.ops.gpu_matmul import ELEMENTS, FOURS, labels_of
from tests.ops.test_convolution import HALF, Case, check, formatted
from tests.support import assert_same, name_of, run_on_device, to_device
from torch_webgpu import _C

SMALLEST = "32x32"
# Edges of tiles and slices, phases that some taps miss, pixels no window reaches. A software adapter compiles a tile
# for seconds: each case is there for what no other one has.
CASES = {
    "whole slices": Case((2, 32, 9, 7), 36, (3, 3), padding=1),
    "split slices": Case((2, 10, 9, 8), 18, (3, 2), stride=2, padding=(1, 0), dilation=(2, 1), groups=2),
    "one axis": Case((3, 5, 45), 12, (4,), stride=3, padding=2),
    "three axes": Case((2, 4, 5, 6, 4), 10, (2, 3, 3), stride=(1, 2, 1), padding=1),
    "transposed": Case((2, 32, 5, 6), 12, (3, 3), padding=1, transposed=True),
    "phases": Case((1, 6, 4, 5), 18, (2, 5), stride=(3, 4), dilation=(2, 2), groups=2, transposed=True,
                   output_padding=(1, 1)),
    "more phases than taps": Case((1, 4, 3, 3), 12, (2, 2), stride=4, transposed=True),
    "phases in depth": Case((1, 32, 2, 3, 2), 10, (2, 3, 2), stride=2, padding=(0, 1, 0), transposed=True),
}  # fmt: skip
LAST = {
    "quads of channels": Case((2, 32, 5, 7), 36, (3, 3), padding=1),
    "quads of groups": Case((1, 8, 6, 6), 24, (2, 3), stride=(1, 2), groups=2),
    "odd channels": Case((2, 5, 6, 7), 11, (3, 2), stride=2),
    "phases of quads": Case((1, 32, 4, 3), 12, (3, 3), stride=2, padding=1, transposed=True),
}


@pytest.fixture(autouse=True)
def forced() -> Iterator[None]:
    _C.force_convolution(SMALLEST)
    yield
    _C.force_convolution("")


def tensors_of(case: Case, last: bool) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    x, weight, bias = case.tensors()
    return formatted(x, last), formatted(weight, last), bias


@pytest.mark.parametrize("name", (*CASES, *LAST))
def test_forward_and_gradients(name: str) -> None:
    case = (CASES | LAST)[name]
    labels = labels_of(lambda: check(case, tensors_of(case, name in LAST)))
    assert sum(SMALLEST in label for label in labels) == 3, labels


@pytest.mark.parametrize("dtype", HALF, ids=name_of)
@pytest.mark.parametrize("last", (False, True), ids=("first", "last"))
def test_halves(dtype: torch.dtype, last: bool) -> None:
    case = Case((2, 32, 4, 6), 36, (3, 3), padding=1)
    half = [tensor.to(dtype) for tensor in tensors_of(case, last)]
    exact = [tensor.float().requires_grad_() for tensor in half]
    device = [to_device(tensor).requires_grad_() for tensor in half]
    expected, actual = case(*exact), run_on_device(case, *device)
    assert_same(actual, expected.to(dtype), **HALF[dtype])
    gradient = torch.randn_like(expected).to(dtype)
    wanted = torch.autograd.grad(expected, exact, gradient.float())
    for one, other in zip(torch.autograd.grad(actual, device, to_device(gradient)), wanted, strict=True):
        assert_same(one, other.to(dtype), **HALF[dtype])


def test_values_that_are_not_the_tensors() -> None:
    """NaN in front of x and behind it, and in the padding's place: none of them counts."""
    flat = torch.full((1000,), float("nan"))
    x = flat[100:].as_strided((2, 3, 8, 8), (240, 80, 10, 1))
    x.copy_(torch.randn(2, 3, 8, 8))
    base = flat.to("webgpu")
    case = Case((2, 3, 8, 8), 9, (3, 3), padding=1)
    _, weight, bias = case.tensors()
    moved = base[100:].as_strided(x.shape, x.stride())
    actual = run_on_device(case, moved, weight.to("webgpu"), bias.to("webgpu"))
    assert_same(actual, case(x, weight, bias), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("width", (8, 7), ids=("fours", "elements"))
def test_epilogues_of_other_texts(width: int) -> None:
    epilogue = _C.Epilogue("twice and one", ELEMENTS, FOURS, [], [1])
    case = Case((2, 32, 4, width), 12, (3, 3), padding=1)
    x, weight, _ = case.tensors()
    expected = case(x, weight) * 2 + 1
    out = torch.empty(expected.shape).to("webgpu")
    window = ([1, 1], [1, 1], [1, 1], [0, 1])
    labels = labels_of(lambda: epilogue.convolution(*to_device((x, weight)), list(out.shape), *window, [out], 0, []))
    assert labels[-1] == "twice and one"
    assert_same(out, expected, rtol=1e-5, atol=1e-4)
    candidates = dict(_C.convolution_candidates(*to_device((x, weight)), list(out.shape), *window))
    assert SMALLEST in candidates.values()


def test_long_sums_come_in_parts() -> None:
    x, gradient = torch.rand(4, 4, 48, 48), torch.rand(4, 12, 48, 48)
    rest = (None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [False, True, False])
    weight = torch.zeros(12, 4, 3, 3)
    exact = torch.ops.aten.convolution_backward(gradient.double(), x.double(), weight.double(), *rest)[1]
    moved = to_device((gradient, x, weight))
    labels = labels_of(lambda: torch.ops.aten.convolution_backward(*moved, *rest))
    assert [label.split(",")[0].split(" (")[0] for label in labels] == ["convolution_weight(f32", "matmul join"]
    actual = run_on_device(torch.ops.aten.convolution_backward, *moved, *rest)[1]
    torch.testing.assert_close(actual.cpu().double(), exact, rtol=2e-6, atol=0)


def test_what_gpus_choose() -> None:
    """Without a word: large tiles where they occupy a large GPU, and none for a few channels."""
    _C.force_convolution("")
    chosen = {}
    for images, channels in ((1, 4), (1, 64), (200, 64)):
        x, weight = torch.zeros(images, 4, 8, 8).to("webgpu"), torch.zeros(channels, 4, 3, 3).to("webgpu")
        labels = labels_of(lambda x=x, weight=weight: torch.conv2d(x, weight, padding=1))
        chosen[images, channels] = next(label.split(",")[1].strip() for label in labels if "convolution" in label)
    assert chosen == {(1, 4): "4 rows)", (1, 64): SMALLEST, (200, 64): "64x64"}


def test_no_such_tile() -> None:
    with pytest.raises(ValueError, match="no tile of convolutions named no such"):
        _C.force_convolution("no such")
