"""Products and convolutions with what is fused to them: results of the CPU, and one kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.compile.support import check, compiled, count
from tests.support import DEVICE, FLOATS, assert_same, name_of, to_device
from torch_webgpu.inductor import launch


def randn(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


# Images, weight, and the arguments of F.conv2d or, with `transposed`, of F.conv_transpose2d.
CONVOLUTIONS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "plain": ((2, 8, 12, 12), (16, 8, 3, 3), {"padding": 1}),
    "groups": ((2, 8, 12, 12), (16, 4, 3, 3), {"padding": 1, "groups": 2}),
    "groups that step": ((1, 12, 9, 11), (6, 4, 3, 2), {"stride": 2, "dilation": (2, 1), "groups": 3}),
    "groups of one element": ((2, 8, 6, 6), (8, 4, 1, 1), {"groups": 2}),
    "transposed": ((2, 8, 7, 9), (8, 6, 3, 3), {"transposed": True}),
    "transposed of one element": ((2, 8, 8, 8), (8, 12, 1, 1), {"transposed": True}),
    "transposed that steps": (
        (2, 8, 6, 6),
        (8, 4, 4, 4),
        {"transposed": True, "stride": 2, "padding": 1, "output_padding": 1},
    ),
    "transposed in groups": ((2, 8, 6, 7), (8, 3, 3, 3), {"transposed": True, "stride": (2, 1), "groups": 4}),
}


def convolution_of(window: dict[str, Any]) -> Callable[..., Tensor]:
    convolve = F.conv_transpose2d if window.get("transposed") else F.conv2d
    rest = {name: value for name, value in window.items() if name != "transposed"}

    def function(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return F.gelu(convolve(x, weight, bias, **rest)) * 2

    return function


@pytest.mark.parametrize("dtype", FLOATS, ids=name_of)
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolution_and_what_follows(name: str, dtype: torch.dtype) -> None:
    x_size, weight_size, window = CONVOLUTIONS[name]
    function = convolution_of(window)
    rows = weight_size[1] * window.get("groups", 1) if window.get("transposed") else weight_size[0]
    args = [randn(*x_size).to(dtype), (randn(*weight_size) / 4).to(dtype), randn(rows).to(dtype)]
    packing = count_of_eager(args, window)
    call = compiled(function)
    expected = function(*(x.float() for x in args)).to(dtype)
    tolerance = {"rtol": 1e-4, "atol": 1e-5} if dtype is torch.float32 else {"rtol": 4 * torch.finfo(dtype).eps}
    for _ in range(2):
        assert_same(call(*to_device(args)), expected, **{"atol": 1e-2, **tolerance})
    assert count(call, *to_device(args)) <= packing


def count_of_eager(args: list[Tensor], window: dict[str, Any]) -> int:
    """The dispatches of the convolution alone: the weight may be packed for it."""
    convolve = F.conv_transpose2d if window.get("transposed") else F.conv2d
    rest = {name: value for name, value in window.items() if name != "transposed"}
    x, weight, _ = to_device([arg.float() for arg in args])
    return count(lambda: convolve(x, weight, **rest))


def test_one_launch_for_a_convolution_in_groups_or_transposed() -> None:
    for name in ("groups", "transposed"):
        x_size, weight_size, window = CONVOLUTIONS[name]
        small = (1, *x_size[1:2], 4, 4)  # so few pixels that the weight is not packed
        rows = weight_size[1] if window.get("transposed") else weight_size[0]
        check(
            convolution_of(window),
            randn(*small),
            randn(*weight_size) / 4,
            randn(rows),
            launches=1,
            rtol=1e-4,
            atol=1e-4,
        )


@pytest.mark.parametrize("transposed", (False, True))
def test_windows_of_single_channels(transposed: bool) -> None:
    """Eager's kernel, and one for what follows."""
    window = {"groups": 6, "padding": 1, "transposed": transposed}
    check(convolution_of(window), randn(2, 6, 10, 10), randn(6, 1, 3, 3), randn(6), launches=2, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", FLOATS, ids=name_of)
def test_a_convolution_alone_is_eager_with_its_bias(dtype: torch.dtype) -> None:
    """One rounding, and one launch."""
    args = [x.to(dtype) for x in (randn(1, 3, 4, 4) * 9, randn(3, 3, 3, 3), randn(3) * 9)]
    moved = to_device(args)
    call = compiled(lambda x, w, b: F.conv2d(x, w, b))
    assert torch.equal(call(*moved).cpu(), F.conv2d(*moved).cpu())
    assert count(call, *moved) == count(F.conv2d, *moved)


# Casts of operands

WEIGHTS: dict[str, Callable[[int, int], Tensor]] = {
    "float16": lambda k, n: randn(k, n).half(),
    "bfloat16": lambda k, n: randn(k, n).bfloat16(),
    "int8": lambda k, n: (randn(k, n) * 40).to(torch.int8),
    "uint8": lambda k, n: (randn(k, n) * 40 + 128).to(torch.uint8),
}


@pytest.mark.parametrize("rows", (1, 5, 64))
@pytest.mark.parametrize("name", WEIGHTS)
def test_a_weight_is_cast_by_the_product(name: str, rows: int) -> None:
    x, w, bias, scale = randn(rows, 96), WEIGHTS[name](96, 40), randn(40), randn(40)
    tolerance = {"rtol": 1e-4, "atol": 1e-3}
    check(lambda x, w: x @ w.to(torch.float32), x, w, launches=1, **tolerance)
    check(lambda x, w, s: x @ (w.to(torch.float32) * s), x, w, scale, launches=1, **tolerance)
    check(lambda x, w, s: x @ (s[None] * w.float()), x, w, scale, launches=1, **tolerance)
    w = w.t().contiguous()
    check(lambda x, w, s, b: F.gelu(F.linear(x, w.float() * s[:, None], b)), x, w, scale, bias, launches=1, **tolerance)


def test_a_left_operand_is_cast_by_the_product() -> None:
    a, b, scale = WEIGHTS["int8"](40, 96), randn(96, 7), randn(40, 1)
    check(lambda a, b, s: (a.float() * s) @ b, a, b, scale, launches=1, rtol=1e-4, atol=1e-3)


def test_batches_of_cast_operands() -> None:
    a, b = randn(3, 5, 24), (randn(3, 24, 12) * 40).to(torch.int8)
    check(lambda a, b: torch.bmm(a, b.float()).relu(), a, b, launches=1, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("dtype", FLOATS[1:], ids=name_of)
def test_int8_weights_of_halves(dtype: torch.dtype) -> None:
    x, w, scale = randn(4, 96).to(dtype), WEIGHTS["int8"](96, 40), (randn(40) / 40).to(dtype)
    expected = (x.float() @ (w.float() * scale.float())).to(dtype)
    call = compiled(lambda x, w, s: x @ (w.to(x.dtype) * s))
    args = to_device((x, w, scale))
    for _ in range(2):
        assert_same(call(*args), expected, rtol=2 * torch.finfo(dtype).eps, atol=1e-2)
    assert count(call, *args) == 1


@pytest.mark.parametrize("transposed", (False, True))
@pytest.mark.parametrize("name", WEIGHTS)
def test_a_convolution_casts_its_weight(name: str, transposed: bool) -> None:
    """Few pixels, whose weight is not packed."""
    x, w, bias = randn(1, 8, 4, 4), WEIGHTS[name](8 * 8, 9).view(8, 8, 3, 3), randn(8)
    scale = randn(1, 8, 1, 1) if transposed else randn(8, 1, 1, 1)
    convolve = F.conv_transpose2d if transposed else F.conv2d
    tolerance = {"rtol": 1e-4, "atol": 1e-2}
    check(lambda x, w: convolve(x, w.to(x.dtype)), x, w, launches=1, **tolerance)
    check(lambda x, w, s, b: convolve(x, w.float() * s, b).relu(), x, w, scale, bias, launches=1, **tolerance)


def test_a_convolution_of_many_pixels_packs_its_weight_with_the_cast() -> None:
    x, w, scale = randn(2, 8, 20, 20), (randn(16, 8, 3, 3) * 40).to(torch.int8), randn(16, 1, 1, 1)
    launches = count(F.conv2d, *to_device((x, w.float())))
    check(lambda x, w, s: F.conv2d(x, w.float() * s), x, w, scale, launches=launches, rtol=1e-4, atol=1e-2)


def test_what_a_convolution_does_not_cast() -> None:
    """Scales along the sum, windows of single channels, and products of many pixels, whose tiles would cast again."""
    x, w = randn(1, 8, 4, 4), (randn(8, 8, 3, 3) * 40).to(torch.int8)
    check(lambda x, w, s: F.conv2d(x, w.float() * s), x, w, randn(1, 8, 1, 1), launches=2, rtol=1e-4, atol=1e-2)
    check(lambda x, w: F.conv2d(x, w.float(), groups=8), x, w[:, :1], launches=2, rtol=1e-4, atol=1e-2)
    point, wide = w[:, :, :1, :1], randn(1, 8, 20, 20)
    check(lambda x, w: F.conv2d(x, w.float()), x, point, launches=1, rtol=1e-4, atol=1e-2)
    check(lambda x, w: F.conv2d(x, w.float()), wide, point, launches=2, rtol=1e-4, atol=1e-2)
    check(lambda x, w, s: F.conv_transpose2d(x, w.float() * s, groups=2), x, w, randn(1, 8, 1, 1), rtol=1e-4, atol=1e-2)


def test_what_is_no_cast_alone() -> None:
    """A scale along the sum, a cast that rounds, and products of many rows, whose tiles would cast again and again."""
    x, w = randn(5, 96), WEIGHTS["int8"](96, 40)
    check(lambda x, w, s: x @ (w.float() * s), x, w, randn(96, 1), launches=2, rtol=1e-4, atol=1e-3)
    check(lambda x, w: x.half() @ w.half(), x, randn(96, 40), launches=2, atol=0.1)
    check(lambda x, w: x @ w.float(), randn(200, 96), w, launches=2, rtol=1e-4, atol=1e-3)


def test_a_weight_of_another_use() -> None:
    """Two kernels, which run side by side."""
    x, w = randn(5, 96), WEIGHTS["int8"](96, 40)
    check(lambda x, w: (x @ w.float(), w.float() + 1), x, w, launches=1, rtol=1e-4, atol=1e-3)


def test_gradients_through_a_cast_weight() -> None:
    x, w = randn(5, 96), WEIGHTS["float16"](96, 40)

    def gradients(x: Tensor, w: Tensor, call: Callable[..., Tensor]) -> list[Tensor]:
        x, w = x.requires_grad_(), w.requires_grad_()
        call(x, w).square().sum().backward()
        return [x.grad, w.grad]  # type: ignore[list-item]

    def function(x: Tensor, w: Tensor) -> Tensor:
        return x @ w.float()

    expected = gradients(x.clone(), w.clone(), function)
    actual = gradients(x.to(DEVICE), w.to(DEVICE), compiled(function))
    assert_same(actual[0], expected[0], rtol=1e-4, atol=1e-3)
    assert_same(actual[1], expected[1], rtol=2e-3, atol=1e-2)


LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "channels last": lambda x: x.to(memory_format=torch.channels_last),
    "turned": lambda x: x.mT,
    "a slice": lambda x: x[:, 1::2],
    "shared": lambda x: x[:1].expand(3, -1, -1, -1),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_of_convolutions(layout: str) -> None:
    x, bias = LAYOUTS[layout](randn(2, 8, 9, 10)), randn(6)
    moved = LAYOUTS[layout](randn(2, 8, 9, 10).to(DEVICE))
    weight = randn(6, x.shape[1], 3, 3)
    for function in (lambda x, w, b: F.conv2d(x, w, b), lambda x, w, b: (F.conv2d(x + 1, w, b, padding=1) - 1).tanh()):
        actual = compiled(function)(moved, weight.to(DEVICE), bias.to(DEVICE))
        assert_same(actual, function(x, weight, bias), rtol=1e-4, atol=1e-4, strides=False)


@pytest.mark.parametrize("rows", (1, 16, 64))
def test_large_int8_weights(rows: int) -> None:
    """The kernels of large products load quads of what has them. GPUs compute so few tiles in parts, which they add."""
    x, w, scale = randn(rows, 512) / 20, WEIGHTS["int8"](512, 1024), torch.rand(1024) / 40
    launches = 1 if launch.target()["software"] else 2
    check(lambda x, w, s: x @ (w.float() * s), x, w, scale, launches=launches, rtol=1e-4, atol=1e-4)
