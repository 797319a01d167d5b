"""Every op of promised.txt, in ATen's or torch's names: native on the device, forward and backward, as on the CPU."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from tests.support import DEVICE, assert_same, run_on_device, to_device

PROMISED = [line for line in (Path(__file__).parent / "promised.txt").read_text().splitlines() if line[0] != "#"]

aten = torch.ops.aten


def floats(*shape: int, low: float = -2.0, high: float = 2.0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.rand(shape, generator=generator).mul(high - low).add(low).requires_grad_()


def positive(*shape: int) -> torch.Tensor:
    return floats(*shape, low=0.5)


def ints(*shape: int, high: int = 4) -> torch.Tensor:
    return torch.randint(high, shape, generator=torch.Generator().manual_seed(sum(shape)))


def places(high: int, *shape: int) -> torch.Tensor:
    return ints(*shape, high=high)


# What is called, and with what. `x` is the first argument, so that `x.device` tells a factory where to work.
Call = tuple[Callable[..., Any], tuple[Any, ...]]


def unary(function: Callable[..., Any], x: torch.Tensor | None = None) -> Call:
    return function, (floats(3, 5) if x is None else x,)


def binary(function: Callable[..., Any]) -> Call:
    return function, (floats(3, 5), positive(5))


def copied(x: torch.Tensor) -> torch.Tensor:
    target = torch.zeros_like(x)
    target.copy_(x)
    return target


def convolution_gradients(x: torch.Tensor, weight: torch.Tensor) -> Any:
    out = F.conv2d(x, weight, padding=1)
    return torch.autograd.grad(out.sum(), (x, weight))


NORM = (floats(4, 6), (6,), floats(6), floats(6))
IMAGE = floats(2, 4, 8, 8)
HEADS = (floats(2, 3, 7, 8), floats(2, 3, 9, 8), floats(3, 2, 9, 8).transpose(0, 1))

CALLS: dict[str, Call] = {
    "empty.memory_format": unary(lambda x: aten.empty.memory_format([2, 3], device=x.device).zero_()),
    "empty_strided": unary(lambda x: torch.empty_strided((2, 3), (1, 2), device=x.device).zero_()),
    "copy_": unary(copied),
    "_copy_from": unary(lambda x: x.to(torch.float16)),
    "to.device": unary(lambda x: x.to(x.device) + 0),
    "to.dtype": unary(lambda x: x.to(torch.bfloat16)),
    "add.Scalar": unary(lambda x: aten.add.Scalar(x, 2.5)),
    "add.Tensor": binary(aten.add.Tensor),
    "add": binary(torch.add),
    "sub.Tensor": binary(aten.sub.Tensor),
    "sub": binary(torch.sub),
    "mul.Tensor": binary(aten.mul.Tensor),
    "mul": binary(torch.mul),
    "div.Tensor": binary(aten.div.Tensor),
    "div": binary(torch.div),
    "neg": unary(torch.neg),
    "pow.Tensor_Scalar": unary(lambda x: aten.pow.Tensor_Scalar(x, 3)),
    "pow": (torch.pow, (positive(3, 5), floats(5))),
    "eq.Tensor": (aten.eq.Tensor, (ints(3, 5), ints(5))),
    "ne.Tensor": (aten.ne.Tensor, (ints(3, 5), ints(5))),
    "lt.Tensor": binary(aten.lt.Tensor),
    "le.Tensor": binary(aten.le.Tensor),
    "gt.Tensor": binary(aten.gt.Tensor),
    "ge.Tensor": binary(aten.ge.Tensor),
    "ne.Scalar": (lambda x: aten.ne.Scalar(x, 2), (ints(3, 5),)),
    "relu": unary(torch.relu),
    "gelu": unary(F.gelu),
    "silu": unary(F.silu),
    "clamp_min": unary(lambda x: torch.clamp_min(x, 0.25)),
    "clamp": unary(lambda x: torch.clamp(x, -1, 0.5)),
    "sigmoid": unary(torch.sigmoid),
    "tanh": unary(torch.tanh),
    "exp": unary(torch.exp),
    "log": unary(torch.log, positive(3, 5)),
    "sqrt": unary(torch.sqrt, positive(3, 5)),
    "rsqrt": unary(torch.rsqrt, positive(3, 5)),
    "abs": unary(torch.abs),
    "round": unary(torch.round),
    "floor": unary(torch.floor),
    "ceil": unary(torch.ceil),
    "minimum": binary(torch.minimum),
    "maximum": binary(torch.maximum),
    "bitwise_and.Tensor": (aten.bitwise_and.Tensor, (ints(3, 5), ints(5))),
    "view": unary(lambda x: x.view(5, 3) * 1),
    "reshape": unary(lambda x: x.t().reshape(-1)),
    "transpose.int": unary(lambda x: x.transpose(0, 1) * 1),
    "transpose": unary(lambda x: torch.transpose(x, 0, 1) * 1),
    "permute": unary(lambda x: x.permute(1, 0) * 1),
    "squeeze": unary(lambda x: x[:1].squeeze(0) * 1),
    "unsqueeze": unary(lambda x: x.unsqueeze(1) * 1),
    "contiguous": unary(lambda x: x.t().contiguous()),
    "flatten": unary(lambda x: x.flatten() * 1),
    "slice.Tensor": unary(lambda x: x[:, 1:4:2] * 1),
    "slice": unary(lambda x: aten.slice(x, 1, 1, 4) * 1),
    "select": unary(lambda x: x.select(1, 2) * 1),
    "narrow": unary(lambda x: x.narrow(1, 1, 2) * 1),
    "expand": unary(lambda x: x.expand(2, 3, 5) * 1),
    "broadcast_to": unary(lambda x: torch.broadcast_to(x, (2, 3, 5)) * 1),
    "as_strided": unary(lambda x: x.as_strided((2, 2), (5, 2)) * 1),
    "resize": unary(lambda x: x.detach().clone().resize_(5, 3)),
    "sum.dim_IntList": unary(lambda x: x.sum([0, 1])),
    "sum": unary(torch.sum),
    "mean.dim": unary(lambda x: x.mean([1])),
    "mean": unary(torch.mean),
    "amax": unary(lambda x: x.amax(1)),
    "amin": unary(lambda x: x.amin(0)),
    "argmax": unary(lambda x: x.argmax(1)),
    "argmin": unary(lambda x: x.argmin()),
    "var_mean": unary(lambda x: torch.var_mean(x, 1)),
    "topk": unary(lambda x: x.topk(2).values),
    "mm": (torch.mm, (floats(3, 4), floats(4, 5))),
    "bmm": (torch.bmm, (floats(2, 3, 4), floats(2, 4, 5))),
    "matmul": (torch.matmul, (floats(2, 3, 4), floats(4, 5))),
    "addmm": (torch.addmm, (floats(5), floats(3, 4), floats(4, 5))),
    "_log_softmax": unary(lambda x: aten._log_softmax(x, 1, False)),
    "softmax.int": unary(lambda x: aten.softmax.int(x, 1)),
    "softmax": unary(lambda x: torch.softmax(x, 0)),
    "layer_norm": (F.layer_norm, NORM),
    "native_layer_norm": (torch.native_layer_norm, (*NORM, 1e-5)),
    "rms_norm": (F.rms_norm, NORM[:3]),
    "group_norm": (F.group_norm, (IMAGE, 2, floats(4), floats(4))),
    "batch_norm": (lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), (IMAGE, floats(4), floats(4))),
    "conv2d": (F.conv2d, (IMAGE, floats(5, 4, 3, 3), floats(5))),
    "conv2d_backward": (convolution_gradients, (IMAGE, floats(5, 4, 3, 3))),
    "max_pool2d": (F.max_pool2d, (IMAGE, 2)),
    "adaptive_avg_pool2d": (F.adaptive_avg_pool2d, (IMAGE, 3)),
    "interpolate": (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), (IMAGE,)),
    "scaled_dot_product_attention": (F.scaled_dot_product_attention, HEADS),
    "cat": (lambda x, y: torch.cat([x, y]), (floats(3, 5), floats(2, 5))),
    "stack": (lambda x, y: torch.stack([x, y]), (floats(3, 5), floats(3, 5))),
    "index_select": (lambda x, i: x.index_select(1, i), (floats(3, 5), places(5, 4))),
    "embedding": (lambda w, i: F.embedding(i, w), (floats(6, 5), places(6, 2, 3))),
    "masked_select": (torch.masked_select, (floats(3, 5), ints(3, 5, high=2).bool())),
    "masked_fill": (lambda x, m: x.masked_fill(m, 1.5), (floats(3, 5), ints(3, 5, high=2).bool())),
    "where.self": (lambda x, m, y: aten.where.self(m, x, y), (floats(3, 5), ints(3, 5, high=2).bool(), floats(5))),
    "where": (lambda x, m: torch.where(m, x, 0.5), (floats(3, 5), ints(3, 5, high=2).bool())),
    "empty_like": unary(lambda x: torch.empty_like(x).zero_()),
    "zeros_like": unary(torch.zeros_like),
    "ones_like": unary(torch.ones_like),
    "arange": unary(lambda x: torch.arange(7, device=x.device)),
    "full": unary(lambda x: torch.full((2, 3), 1.5, device=x.device)),
    "rand": unary(lambda x: torch.rand(50, device=x.device) < 1),
    "randn": unary(lambda x: torch.randn(50, device=x.device).isfinite()),
    "clone": unary(torch.clone),
    "to": unary(lambda x: x.to(torch.int32)),
    "quantize_per_tensor": unary(
        lambda x: torch.quantize_per_tensor(x.detach(), 0.1, 3, torch.quint8).int_repr(), floats(3, 5)
    ),
    "dequantize": unary(lambda x: torch.quantize_per_tensor(x.detach(), 0.1, 3, torch.qint8).dequantize()),
}


def leaves(result: Any) -> list[torch.Tensor]:
    return [result] if isinstance(result, torch.Tensor) else list(result)


def gradients(result: Any, inputs: tuple[Any, ...]) -> list[torch.Tensor]:
    """Of a sum that gives each element a weight of its own."""
    total = sum(
        (x.float() * torch.linspace(0.5, 1.5, x.numel(), device=x.device).view(x.shape)).sum()
        for x in leaves(result)
        if x.requires_grad
    )
    return list(torch.autograd.grad(total, [x for x in inputs if isinstance(x, torch.Tensor) and x.requires_grad]))


def test_each_line_has_a_call() -> None:
    assert sorted(CALLS) == sorted(PROMISED)


@pytest.mark.parametrize("name", PROMISED)
def test_promised(name: str) -> None:
    function, inputs = CALLS[name]
    moved = to_device(inputs)
    expected = function(*inputs)
    result = run_on_device(function, *moved, waits=None)  # nonzero and its like are among them
    assert_same(result, expected, name)
    if any(x.requires_grad for x in leaves(expected)):
        assert all(x.device.type == DEVICE for x in leaves(result))
        actual, wanted = run_on_device(gradients, result, moved, waits=None), gradients(expected, inputs)
        assert_same(actual, wanted, f"gradient of {name}", strides=False, rtol=1e-5, atol=1e-5)
