"""Nested tensors, strided and jagged, against the CPU: values, gradients, attention. Nothing may fall back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tests.support import DEVICE, assert_same, on_device, to_device

Run = Callable[[str], Any]
PARTS = [torch.randn(3, 8, generator=torch.Generator().manual_seed(0)), torch.arange(40.0).reshape(5, 8) / 8 - 2]
WEIGHT = torch.randn(6, 8, generator=torch.Generator().manual_seed(1))


def strided(device: str, parts: list[torch.Tensor] = PARTS, grad: bool = False) -> torch.Tensor:
    return torch.nested.nested_tensor(parts, device=device, requires_grad=grad)


def jagged(device: str, parts: list[torch.Tensor] = PARTS, grad: bool = False) -> torch.Tensor:
    return torch.nested.nested_tensor(parts, device=device, requires_grad=grad, layout=torch.jagged)


def parts_of(x: torch.Tensor) -> list[torch.Tensor]:
    return [part.detach() for part in x.unbind()] if x.is_nested else [x.detach()]


def with_gradient(make: Callable[..., torch.Tensor], call: Callable[[torch.Tensor], torch.Tensor]) -> Run:
    def run(device: str) -> list[torch.Tensor]:
        x = make(device, grad=True)
        y = call(x)
        (y.values() if make is jagged else y.to_padded_tensor(0.0)).square().sum().backward()
        assert x.grad is not None
        return parts_of(y) + parts_of(x.grad)

    return run


def attention(make: Callable[..., torch.Tensor], heads: int) -> Run:
    def run(device: str) -> list[torch.Tensor]:
        x = make(device, grad=True)
        if make is jagged:
            q = x.unflatten(-1, [heads, 8 // heads]).transpose(1, 2)
        else:
            q = x.reshape(2, -1, heads, 8 // heads).transpose(1, 2).contiguous()
        y = F.scaled_dot_product_attention(q, q, q).transpose(1, 2)
        (y.values() if make is jagged else y.contiguous().to_padded_tensor(0.0)).square().sum().backward()
        assert x.grad is not None
        return parts_of(y) + parts_of(x.grad)

    return run


CASES: dict[str, Run] = {
    "make": lambda d: parts_of(strided(d)),
    "as_nested_tensor": lambda d: parts_of(torch.nested.as_nested_tensor([part.to(d) for part in PARTS])),
    "add": lambda d: parts_of(strided(d) + strided(d)),
    "number": lambda d: parts_of(strided(d) * 3),
    "gelu": with_gradient(strided, F.gelu),
    "linear": with_gradient(strided, lambda x: F.linear(x, WEIGHT.to(x.device))),
    "layer_norm": with_gradient(
        strided, lambda x: F.layer_norm(x, (8,), WEIGHT[0].to(x.device), WEIGHT[1].to(x.device))
    ),
    "softmax": with_gradient(strided, lambda x: x.softmax(-1)),
    "matmul": lambda d: parts_of(strided(d) @ strided(d).transpose(1, 2)),
    "bmm": lambda d: parts_of(torch.bmm(strided(d), strided(d).transpose(1, 2))),
    "to_padded_tensor": lambda d: parts_of(strided(d).to_padded_tensor(7.0)),
    "transpose": lambda d: parts_of(strided(d).transpose(1, 2).contiguous()),
    "chunk": lambda d: [part for half in strided(d).chunk(2, -1) for part in parts_of(half)],
    "half": lambda d: parts_of(strided(d).half()),
    "select": lambda d: parts_of(strided(d)[1]),
    "attention": attention(strided, 2),
    "jagged linear": with_gradient(jagged, lambda x: F.linear(x, WEIGHT.to(x.device))),
    "jagged softmax": with_gradient(jagged, lambda x: x.softmax(-1)),
    "jagged ragged softmax": lambda d: parts_of(jagged(d).softmax(1)),
    "jagged layer_norm": with_gradient(jagged, lambda x: F.layer_norm(x, (8,))),
    "jagged to_padded_tensor": lambda d: parts_of(jagged(d).to_padded_tensor(7.0)),
    "jagged sum": lambda d: parts_of(jagged(d).sum(-1)),
    "jagged mean": lambda d: parts_of(jagged(d).mean(1)),
    "jagged attention": attention(jagged, 1),
    "jagged attention of four heads": attention(jagged, 4),
}


@pytest.mark.parametrize("name", CASES)
def test_as_on_the_cpu(name: str) -> None:
    expected = CASES[name]("cpu")
    with on_device(None, waits=None):
        actual = CASES[name](DEVICE)
    assert_same(actual, expected, name, rtol=1e-5, atol=1e-5, strides=False)


def test_a_sum_runs_on_the_cpu() -> None:
    """PyTorch's own kernel reads the elements itself."""
    before = torch.webgpu.set_fallback_mode("quiet")
    try:
        total = strided(DEVICE).sum(-1, keepdim=True)
    finally:
        torch.webgpu.set_fallback_mode(before)
    assert total.device.type == DEVICE
    assert_same(parts_of(total), parts_of(strided("cpu").sum(-1, keepdim=True)), exact=True)


def test_there_and_back() -> None:
    x = strided(DEVICE)
    assert_same(to_device(parts_of(x.cpu())), PARTS, exact=True)
    assert "webgpu" in repr(x)


def test_what_has_no_kernel_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="aten::cumsum is not implemented for nested tensors"):
        strided(DEVICE).cumsum(-1)
