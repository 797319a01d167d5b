"""Layers that normalise: layer, rms, batch, group, instance and weight norm against the CPU, forward and backward."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.support import (
    DEVICE,
    FLOATS,
    assert_same,
    assert_same_error,
    clone_layout,
    name_of,
    on_device,
    outcome,
    run_on_device,
    to_device,
)

CLOSE = {"rtol": 1e-5, "atol": 1e-5}
# the CPU keeps some statistics in float16 or bfloat16
HALF = {torch.float16: {"rtol": 4e-3, "atol": 4e-3}, torch.bfloat16: {"rtol": 3e-2, "atol": 3e-2}}


def tolerance(dtype: torch.dtype) -> dict[str, float]:
    return CLOSE if dtype == torch.float32 else HALF[dtype]


def randn(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(shape, generator=generator).to(dtype)


def channels_last(x: torch.Tensor) -> torch.Tensor:
    return x.contiguous(memory_format=torch.channels_last)


def check(function: Callable[..., torch.Tensor], *args: Any, close: dict[str, float] = CLOSE, **kwargs: Any) -> None:
    """The result and the gradients of all floating tensors among the arguments."""
    cpu = [x.detach().clone().requires_grad_() if isinstance(x, torch.Tensor) else x for x in clone_layout(args)]
    gpu = [x.requires_grad_() if isinstance(x, torch.Tensor) else x for x in to_device([detached(x) for x in args])]
    expected = function(*clone_strides(cpu, args), **kwargs)
    actual = run_on_device(function, *gpu, **kwargs)
    assert_same(actual, expected, "result", **close)
    seed = randn(*expected.shape, dtype=expected.dtype, seed=7)
    inputs = [x for x in cpu if isinstance(x, torch.Tensor)]
    wanted = torch.autograd.grad(expected, inputs, seed)
    with on_device(None):
        found = torch.autograd.grad(actual, [x for x in gpu if isinstance(x, torch.Tensor)], to_device(seed))
    # a gradient of a weight is a sum over everything
    scale = max(1.0, *(float(x.abs().max()) for x in wanted if x.numel()))
    close = {"rtol": close["rtol"] * 4, "atol": close["atol"] * scale * 4}
    for index, (one, other) in enumerate(zip(found, wanted, strict=True)):
        assert_same(one, other, f"gradient {index}", strides=False, **close)


def detached(x: Any) -> Any:
    return x.detach() if isinstance(x, torch.Tensor) else x


def clone_strides(cpu: list[Any], args: tuple[Any, ...]) -> list[Any]:
    """Clones made dense by clone() get the strides of what they were made from, as views that keep their gradients."""
    return [
        x if not isinstance(x, torch.Tensor) or x.stride() == arg.stride() else restride(x, arg)
        for x, arg in zip(cpu, args, strict=True)
    ]


def restride(x: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    order = sorted(range(x.dim()), key=lambda dim: -like.stride(dim))
    inverse = sorted(range(x.dim()), key=order.__getitem__)
    return x.permute(order).contiguous().permute(inverse)


# layer_norm and rms_norm

SHAPES = [
    ((9, 64), (64,)),  # whole quads
    ((5, 67), (67,)),  # rows that begin anywhere
    ((3, 4, 10), (4, 10)),
    ((35, 1024), (1024,)),  # the longest row that registers hold
    ((19, 1000), (1000,)),  # likewise, not in whole blocks
    ((6, 1030), (1030,)),
    ((70, 8), (8,)),  # a row per invocation
    ((33, 3), (3,)),
    ((2, 1), (1,)),
    ((1, 4096), (4096,)),
]


@pytest.mark.parametrize("dtype", FLOATS, ids=name_of)
@pytest.mark.parametrize("shape, normalized", SHAPES, ids=str)
def test_layer_norm(shape: tuple[int, ...], normalized: tuple[int, ...], dtype: torch.dtype) -> None:
    x, weight, bias = (randn(*s, dtype=dtype, seed=i) for i, s in enumerate((shape, normalized, normalized)))
    close = tolerance(dtype)
    check(lambda *args: F.layer_norm(args[0], normalized, *args[1:]), x, weight, bias, close=close)
    if dtype == torch.float32:
        check(lambda x: F.layer_norm(x, normalized), x)
        check(lambda x, w: F.layer_norm(x, normalized, w), x, weight)
    else:
        check(lambda *args: F.layer_norm(args[0], normalized, *args[1:]), x, weight.float(), bias.float(), close=close)


@pytest.mark.parametrize("dtype", FLOATS, ids=name_of)
@pytest.mark.parametrize("shape, normalized", SHAPES, ids=str)
def test_rms_norm(shape: tuple[int, ...], normalized: tuple[int, ...], dtype: torch.dtype) -> None:
    x, weight = (randn(*s, dtype=dtype, seed=i) for i, s in enumerate((shape, normalized)))
    check(lambda x, w: F.rms_norm(x, normalized, w), x, weight, close=tolerance(dtype))
    check(lambda x: F.rms_norm(x, normalized, eps=1e-3), x, close=tolerance(dtype))


def test_layer_norm_results_beside_the_output() -> None:
    x, weight, bias = randn(4, 6, 20), randn(20), randn(20, seed=1)
    for dtype in FLOATS:
        args = [v.to(dtype) for v in (x, weight, bias)]
        expected = torch.native_layer_norm(args[0], (20,), *args[1:], 1e-5)
        actual = run_on_device(torch.native_layer_norm, *to_device([args[0], (20,), *args[1:], 1e-5]))
        assert_same(actual, expected, **tolerance(dtype))
    expected = torch.native_layer_norm(x, (20,), weight, bias, 1e-5)
    out = [torch.empty(0, device=DEVICE) for _ in range(3)]
    torch.ops.aten.native_layer_norm.out(
        *to_device([x, (20,), weight, bias, 1e-5]), out0=out[0], out1=out[1], out2=out[2]
    )
    assert_same(tuple(out), tuple(expected), **CLOSE)


def test_layer_norm_strides_and_offsets() -> None:
    x = randn(8, 65)
    for view in (x.t(), x[1:, 1:], x[:, ::2], x[::2], x[:1].expand(4, 65)):
        size = view.shape[-1]
        actual = run_on_device(F.layer_norm, to_device(view), (size,))
        assert_same(actual, F.layer_norm(view, (size,)), **CLOSE)
    both = randn(2, 64)  # weight and bias in one buffer
    moved = to_device(both)
    actual = run_on_device(F.layer_norm, to_device(randn(5, 64)), (64,), moved[0], moved[1])
    assert_same(actual, F.layer_norm(randn(5, 64), (64,), both[0], both[1]), **CLOSE)


@pytest.mark.parametrize("length", [64, 1000, 101, 20, 5000])
def test_far_from_zero(length: int) -> None:
    """A mean of 1e4 with a spread of 1: a sum of squares minus the mean's square would have no digit left."""
    x = randn(6, length) + 1e4
    exact = F.layer_norm(x.double(), (length,)).float()
    actual = run_on_device(F.layer_norm, to_device(x), (length,))
    torch.testing.assert_close(actual.cpu(), exact, rtol=2e-3, atol=2e-3)
    pixels = x.view(1, 6, -1)
    exact = F.batch_norm(pixels.double(), None, None, training=True).float()
    actual = run_on_device(F.batch_norm, to_device(pixels), None, None, training=True)
    torch.testing.assert_close(actual.cpu(), exact, rtol=2e-3, atol=2e-3)
    exact = F.group_norm(pixels.double(), 2).float()
    actual = run_on_device(F.group_norm, to_device(pixels), 2)
    torch.testing.assert_close(actual.cpu(), exact, rtol=2e-3, atol=2e-3)


def test_special_values() -> None:
    x = randn(6, 72)
    x[0, 3] = float("nan")
    x[1, 5] = float("inf")
    x[2] = 0
    x[3] = 7
    for size in (72, 70):
        y = x[:, :size]
        assert_same(run_on_device(F.layer_norm, to_device(y), (size,)), F.layer_norm(y, (size,)), **CLOSE)
        assert_same(run_on_device(F.rms_norm, to_device(y), (size,)), F.rms_norm(y, (size,)), **CLOSE)


def test_layer_norm_of_nothing() -> None:
    for shape in ((0, 5), (3, 0, 5)):
        check(lambda *args: F.layer_norm(args[0], (5,), *args[1:]), randn(*shape), randn(5), randn(5))
        check(lambda x, w: F.rms_norm(x, (5,), w), randn(*shape), randn(5))


def test_layer_norm_errors() -> None:
    calls: list[tuple[Callable[..., Any], list[Any]]] = [
        (F.layer_norm, [randn(3, 4), (5,)]),
        (F.layer_norm, [randn(3, 4), ()]),
        (F.layer_norm, [randn(3, 4), (4,), randn(3)]),
        (F.layer_norm, [randn(3, 4), (4,), randn(4), randn(5)]),
        (F.layer_norm, [randn(3, 4), (4,), randn(4).half()]),
        (F.layer_norm, [torch.ones(3, 4, dtype=torch.int64), (4,)]),
        (F.rms_norm, [randn(3, 4), (5,)]),
        (F.group_norm, [randn(3, 4, 5), 3]),
        (F.group_norm, [randn(3, 4, 5), 2, randn(5)]),
        (F.batch_norm, [randn(3, 4), randn(5), randn(5)]),
        (F.batch_norm, [randn(1, 4), None, None, None, None, True]),
        (F.batch_norm, [randn(3, 4), None, None]),
        (F.batch_norm, [torch.ones(3, 4, dtype=torch.int64), None, None, None, None, True]),
    ]
    for function, args in calls:
        actual, expected = outcome(function, *to_device(args))[1], outcome(function, *args)[1]
        assert expected is not None
        assert_same_error(actual, expected, f"{function.__name__} {args}")


# batch_norm and instance_norm

BATCHES = {
    "rows": lambda: randn(4, 6, 5, 8),
    "odd rows": lambda: randn(3, 5, 7, 5),
    "long rows": lambda: randn(2, 3, 40, 40),
    "vectors": lambda: randn(12, 8),
    "odd vectors": lambda: randn(9, 7),
    "short": lambda: randn(5, 6, 3),
    "volumes": lambda: randn(2, 3, 4, 5, 6),
    "channels last": lambda: channels_last(randn(4, 8, 5, 6)),
    "odd channels last": lambda: channels_last(randn(3, 5, 4, 3)),
    "transposed": lambda: randn(6, 4, 20).transpose(0, 1),
}


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("name", BATCHES)
def test_batch_norm(name: str, training: bool) -> None:
    x = BATCHES[name]()
    channels = x.size(1)
    mean, var = randn(channels, seed=3), randn(channels, seed=4).abs() + 0.5

    def run(*args: torch.Tensor) -> torch.Tensor:
        host = args[0].device.type == "cpu"
        running = (mean.clone(), var.clone()) if host else (mean.to(DEVICE), var.to(DEVICE))
        result = F.batch_norm(args[0], *running, *args[1:], training=training, momentum=0.2)
        stats["cpu" if host else DEVICE] = running
        return result

    stats: dict[str, Any] = {}
    check(run, x, randn(channels, seed=1), randn(channels, seed=2))
    assert_same(stats[DEVICE], stats["cpu"], "running statistics", **CLOSE)
    check(run, x)


@pytest.mark.parametrize("dtype", FLOATS[1:], ids=name_of)
@pytest.mark.parametrize("name", ["rows", "odd rows", "odd vectors", "channels last"])
def test_batch_norm_half(name: str, dtype: torch.dtype) -> None:
    x = BATCHES[name]().to(dtype)
    channels = x.size(1)
    for params in (dtype, torch.float32):
        weight, bias, mean = (randn(channels, seed=i, dtype=params) for i in range(3))
        var = torch.ones(channels, dtype=params)
        for training in (True, False):

            def run(x: torch.Tensor, *params: torch.Tensor, training: bool) -> torch.Tensor:
                running = (v.clone().to(x.device) for v in (mean, var))  # noqa: B023
                return F.batch_norm(x, *running, *params, training)

            check(run, x, weight, bias, close=HALF[dtype], training=training)


@pytest.mark.parametrize(
    "module",
    [
        lambda: nn.BatchNorm2d(6),
        lambda: nn.BatchNorm2d(6, momentum=None),
        lambda: nn.BatchNorm2d(6, affine=False),
        lambda: nn.BatchNorm2d(6, track_running_stats=False),
        lambda: nn.InstanceNorm2d(6),
        lambda: nn.InstanceNorm2d(6, affine=True, track_running_stats=True),
        lambda: nn.GroupNorm(3, 6),
        lambda: nn.CrossMapLRN2d(3),
    ],
)
def test_modules_over_steps(module: Callable[[], nn.Module]) -> None:
    """Three steps of training and one of evaluation, with all that a module remembers."""
    torch.manual_seed(0)
    host = module()
    device = copy.deepcopy(host).to(DEVICE)
    for step in range(4):
        if step == 3:
            host.eval(), device.eval()
        x = randn(3, 6, 4, 5, seed=step)
        expected, actual = host(x), device(x.to(DEVICE))
        assert_same(actual, expected, f"step {step}", **CLOSE)
        for (name, one), other in zip(device.state_dict().items(), host.state_dict().values(), strict=True):
            assert_same(one, other, f"step {step}: {name}", **CLOSE)


def test_other_forms_of_batch_norm() -> None:
    x, weight, bias, mean, var = randn(3, 4, 5), randn(4), randn(4, seed=1), randn(4, seed=2), torch.rand(4) + 0.5
    aten = torch.ops.aten
    for call, args in (
        (aten._native_batch_norm_legit.default, (x, weight, bias, mean, var, True, 0.1, 1e-5)),
        (aten._native_batch_norm_legit.default, (x, weight, bias, mean, var, False, 0.1, 1e-5)),
        (aten._native_batch_norm_legit.no_stats, (x, weight, bias, True, 0.1, 1e-5)),
        (aten._batch_norm_with_update.default, (x, weight, bias, mean, var, 0.1, 1e-5)),
        (aten._batch_norm_no_update.default, (x, weight, bias, mean, var, 0.1, 1e-5)),
    ):
        given = clone_layout(args)
        moved = to_device(args)
        assert_same(tuple(run_on_device(call, *moved)), tuple(call(*given)), str(call), **CLOSE)
        assert_same(moved[3], given[3], f"{call}: running mean", **CLOSE)
        assert_same(moved[4], given[4], f"{call}: running variance", **CLOSE)
    results = tuple(torch.empty(0, device=DEVICE) for _ in range(3))
    torch.native_batch_norm(*to_device((x, weight, bias, mean, var, True, 0.1, 1e-5)), out=results)
    assert_same(results, tuple(torch.native_batch_norm(x, weight, bias, mean, var, True, 0.1, 1e-5)), **CLOSE)


# group_norm, weight_norm


@pytest.mark.parametrize("dtype", FLOATS, ids=name_of)
@pytest.mark.parametrize(
    "make, groups",
    [
        (lambda: randn(2, 6, 5, 7), 3),
        (lambda: randn(2, 8, 8, 8), 2),
        (lambda: randn(3, 8), 4),
        (lambda: randn(2, 4, 9), 4),
        (lambda: randn(2, 6, 70), 1),
        (lambda: channels_last(randn(2, 8, 5, 4)), 2),
        (lambda: channels_last(randn(2, 6, 5, 3)), 3),
        (lambda: randn(2, 6, 3, 4, 5).contiguous(memory_format=torch.channels_last_3d), 3),
    ],
)
def test_group_norm(make: Callable[[], torch.Tensor], groups: int, dtype: torch.dtype) -> None:
    x = make().to(dtype)
    weight, bias = randn(x.size(1), dtype=dtype, seed=1), randn(x.size(1), dtype=dtype, seed=2)
    close = tolerance(dtype)
    check(lambda x, w, b: F.group_norm(x, groups, w, b), x, weight, bias, close=close)
    if dtype == torch.float32:
        check(lambda x: F.group_norm(x, groups), x)
    else:
        check(lambda x, w, b: F.group_norm(x, groups, w, b), x, weight.float(), bias.float(), close=close)


@pytest.mark.parametrize("dtype", FLOATS, ids=name_of)
@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_weight_norm(dim: int, dtype: torch.dtype) -> None:
    v = randn(6, 5, 8, dtype=dtype)
    g = torch.norm_except_dim(v.float(), 2, dim).to(dtype) + 1
    check(lambda v, g: torch._weight_norm(v, g, dim), v, g, close=tolerance(dtype))
