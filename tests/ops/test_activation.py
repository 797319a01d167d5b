"""Activations and losses, forward and backward."""

import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tests.support import FLOATS, assert_same, assert_same_error, name_of, on_device, outcome, to_device

Call = Callable[..., torch.Tensor]

ACTIVATIONS: dict[str, Call] = {
    "relu": F.relu,
    "relu6": F.relu6,
    "leaky_relu": lambda x: F.leaky_relu(x, 0.2),
    "elu": lambda x: F.elu(x, 1.3),
    "elu_of_result": lambda x: F.elu(x * 1, inplace=True),
    "celu": lambda x: F.celu(x, 1.7),
    "selu": F.selu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "mish": F.mish,
    "softplus": lambda x: F.softplus(x, 2, 5),
    "softsign": F.softsign,
    "tanh": torch.tanh,
    "tanhshrink": F.tanhshrink,
    "sigmoid": torch.sigmoid,
    "logsigmoid": F.logsigmoid,
    "hardtanh": lambda x: F.hardtanh(x, -0.5, 2.0),
    "hardsigmoid": F.hardsigmoid,
    "hardswish": F.hardswish,
    "hardshrink": lambda x: F.hardshrink(x, 0.7),
    "softshrink": lambda x: F.softshrink(x, 0.7),
    "threshold": lambda x: F.threshold(x, 0.5, -3.0),
    "glu": lambda x: F.glu(x, 0),
    "rrelu": lambda x: F.rrelu(x, 0.1, 0.3),
    "logit": lambda x: torch.logit(x, 1e-3),
    "logit_unbounded": lambda x: torch.logit(x.abs() / 32),
}


def gradients(call: Call, inputs: tuple[torch.Tensor, ...]) -> tuple[Any, ...]:
    leaves = [x.detach().requires_grad_() if x.is_floating_point() else x for x in inputs]
    result = call(*leaves)
    wanted = [x for x in leaves if x.requires_grad]
    upstream = torch.linspace(1, 2, result.numel()).to(result).view_as(result)
    given = torch.autograd.grad(result, wanted, upstream, allow_unused=True)
    return (result, *(x for x in given if x is not None))


def check(call: Call, inputs: tuple[torch.Tensor, ...], message: str) -> None:
    expected = gradients(call, inputs)
    moved = to_device(inputs)
    with on_device() as results:
        results.append(gradients(call, moved))
    assert_same(results[0], expected, message)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation(name: str) -> None:
    # In float16 the CPU rounds within these.
    for dtype in FLOATS if name not in ("glu", "logit", "logit_unbounded") else (torch.float32,):
        x = torch.linspace(-30, 30, 244).to(dtype).view(4, 61)
        x[0, :6] = torch.tensor([0.0, -0.0, 1.0, -1.0, 3.0, -3.0])
        check(ACTIVATIONS[name], (x,), name_of(dtype))
    x = torch.linspace(-4, 4, 48).view(6, 8)[:, ::2]
    check(ACTIVATIONS[name], (x.t()[:2] if name == "glu" else x,), "strided")


# oneDNN's gelu of infinity is NaN.
@pytest.mark.parametrize("name", [name for name in ACTIVATIONS if name != "gelu"])
def test_activation_of_special_values(name: str) -> None:
    x = torch.tensor([float("inf"), float("-inf"), float("nan"), 1e37, -1e37, 1e-30])
    assert_same(ACTIVATIONS[name](to_device(x)), ACTIVATIONS[name](x), name)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation_of_integers(name: str) -> None:
    for dtype in (torch.int64, torch.uint8, torch.bool):
        x = torch.tensor([0, 1, 2, 7], dtype=dtype)
        expected, refused = outcome(ACTIVATIONS[name], x)
        actual, error = outcome(ACTIVATIONS[name], to_device(x))
        assert type(error) is type(refused), f"{dtype}: {error!r}, but the CPU {refused!r}"
        if refused is None:
            assert_same(actual, expected, name_of(dtype))


def test_prelu() -> None:
    x = torch.linspace(-3, 3, 48).view(2, 4, 6)
    for weight in (torch.tensor([0.3]), torch.linspace(0.1, 0.4, 4)):
        check(F.prelu, (x, weight), str(weight.shape))


REDUCTIONS = ("none", "mean", "sum")
LOSSES: dict[str, Call] = {
    "mse": F.mse_loss,
    "l1": F.l1_loss,
    "smooth_l1": lambda x, y, reduction: F.smooth_l1_loss(x, y, reduction=reduction, beta=0.4),
    "huber": lambda x, y, reduction: F.huber_loss(x, y, reduction=reduction, delta=0.4),
    "binary_cross_entropy": lambda x, y, reduction: F.binary_cross_entropy(x, y.detach(), reduction=reduction),
    "weighted_cross_entropy": lambda x, y, reduction: F.binary_cross_entropy(
        x, y.detach(), weight=y.detach() + 1, reduction=reduction
    ),
    "with_logits": lambda x, y, reduction: F.binary_cross_entropy_with_logits(x, y.detach(), reduction=reduction),
    "soft_margin": lambda x, y, reduction: F.soft_margin_loss(x, y.detach(), reduction=reduction),
}


@pytest.mark.parametrize("name", LOSSES)
def test_loss(name: str) -> None:
    x, y = torch.linspace(0, 1, 60).view(5, 12), torch.linspace(1, 0, 60).view(12, 5).t()
    for reduction in REDUCTIONS:
        check(functools.partial(LOSSES[name], reduction=reduction), (x, y), reduction)


@pytest.mark.parametrize("name", ("gelu", "glu", "softplus", "hardtanh"))
def test_refusals(name: str) -> None:
    calls: dict[str, Call] = {
        "gelu": lambda x: F.gelu(x, approximate="none of these"),
        "glu": lambda x: F.glu(x[:3], 0),
        "softplus": lambda x: F.softplus(x.long()),
        "hardtanh": lambda x: F.hardtanh(x.bool()),
    }
    x = torch.ones(4, 4)
    actual, expected = outcome(calls[name], to_device(x))[1], outcome(calls[name], x)[1]
    if name == "softplus":  # the CPU names its kernel
        assert type(actual) is type(expected)
        return
    assert_same_error(actual, expected)
