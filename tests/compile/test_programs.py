"""Whole programs: dynamic sizes, custom ops, own kernels, autocast, numbers of the host, checkpointing."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch._dynamo.utils import counters
from torch.utils.checkpoint import checkpoint

from tests.compile.support import compiled, count
from tests.support import DEVICE, assert_same, on_device, to_device

SCALE = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@group(0) @binding(2) var<uniform> alpha: f32;
@compute @workgroup_size(64)
fn scale(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&x)) { out[id.x] = alpha * x[id.x]; }
}
"""


def graphs() -> int:
    return counters["stats"]["unique_graphs"]


def test_sizes_change_without_another_compilation() -> None:
    """A product, a normalisation, a sum over both sizes and their gradients: one graph for all batches and lengths."""
    model = nn.Sequential(nn.Linear(16, 8), nn.GELU(), nn.LayerNorm(8))
    moved = copy.deepcopy(model).to(DEVICE)
    call = compiled(moved, dynamic=True)
    before = graphs()
    for batch, length in ((3, 4), (5, 4), (2, 9), (7, 6)):
        model.zero_grad()
        moved.zero_grad()
        x = torch.randn(batch, length, 16)
        expected = model(x)
        with on_device(waits=None) as results:
            results.append(call(x.to(DEVICE)))
            results[0].square().mean().backward()
        assert_same(results[0], expected, rtol=1e-4, atol=1e-5)
        expected.square().mean().backward()
        for one, other in zip(moved.parameters(), model.parameters(), strict=True):
            assert_same(one.grad, other.grad, rtol=1e-3, atol=1e-5, strides=False)
    assert graphs() - before == 1


@torch.library.custom_op("torch_webgpu_tests::sin_times", mutates_args=())
def sin_times(x: Tensor, y: Tensor) -> Tensor:
    return x.sin() * y


@sin_times.register_fake
def _(x: Tensor, y: Tensor) -> Tensor:
    return torch.empty_like(x)


def _sin_times_gradients(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
    x, y = ctx.saved_tensors
    return gradient * x.cos() * y, gradient * x.sin()


sin_times.register_autograd(
    _sin_times_gradients, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs)
)


@torch.library.custom_op("torch_webgpu_tests::add_to", mutates_args=("x",))
def add_to(x: Tensor, y: Tensor) -> None:
    x.add_(y)


@torch.library.custom_op("torch_webgpu_tests::scaled", mutates_args=())
def scaled(x: Tensor, alpha: float) -> Tensor:
    out = torch.empty_like(x)
    torch.webgpu.compile_shader(SCALE).scale(x, out, alpha)
    return out


@scaled.register_fake
def _(x: Tensor, alpha: float) -> Tensor:
    return torch.empty_like(x)


def test_custom_ops() -> None:
    def function(x: Tensor, y: Tensor) -> Tensor:
        z = (sin_times(x * 2, y) + 1).relu()
        result = z.clone()
        add_to(result, y)
        return result * 3

    x, y = torch.randn(9), torch.randn(9)
    x_device, y_device = to_device((x, y))
    for t in (x, x_device):
        t.requires_grad_()
    call = compiled(function)
    for _ in range(2):
        actual, expected = call(x_device, y_device), function(x, y)
        assert_same(actual, expected)
        actual.sum().backward()
        expected.sum().backward()
    assert_same(x_device.grad, x.grad)


def test_own_kernel_in_a_custom_op() -> None:
    call = compiled(lambda x: scaled(x + 1, 2.5) * 3)
    for seed in range(3):
        x = torch.randn(100, generator=torch.Generator().manual_seed(seed))
        assert_same(call(x.to(DEVICE)), (x + 1) * 2.5 * 3)
    assert count(call, x.to(DEVICE)) == 3


def test_own_kernel_called_plainly_breaks_the_graph() -> None:
    library = torch.webgpu.compile_shader(SCALE)

    def function(x: Tensor) -> Tensor:
        y = x + 1
        out = torch.empty_like(y)
        library.scale(y, out, 2.5)
        return out * 3

    torch._dynamo.reset()
    call = torch.compile(function, backend="webgpu")
    before = graphs()
    x = torch.randn(100)
    for _ in range(2):
        assert_same(call(x.to(DEVICE)), (x + 1) * 2.5 * 3)
    assert graphs() - before == 2, "one in front of the kernel and one behind it"
    with pytest.raises(torch._dynamo.exc.Unsupported, match="skipped"):
        compiled(function)(x.to(DEVICE))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_autocast(dtype: torch.dtype) -> None:
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)).to(DEVICE)
    x = torch.randn(5, 8).to(DEVICE)

    def inside(x: Tensor) -> Tensor:
        with torch.autocast(DEVICE, dtype=dtype):
            return model(x)

    def gradients(loss: Tensor) -> list[Tensor]:
        model.zero_grad()
        loss.float().square().sum().backward()
        return [p.grad.clone() for p in model.parameters() if p.grad is not None]

    expected = inside(x)
    wanted = gradients(expected)
    around = compiled(model)

    def outside(x: Tensor) -> Tensor:
        with torch.autocast(DEVICE, dtype=dtype):
            return around(x)

    # A fused chain rounds fewer times than eager does.
    tolerance = 8 * torch.finfo(dtype).eps
    for call in (outside, compiled(inside)):
        actual = call(x)
        assert actual.dtype is dtype
        torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)
        for one, other in zip(gradients(actual), wanted, strict=True):
            torch.testing.assert_close(one, other, rtol=4 * tolerance, atol=8 * tolerance)
    assert around(x).dtype is torch.float32, "what was compiled under autocast is not for calls without it"


NUMBERS = [
    (2, 3.5),
    (torch.tensor(2.5), 1),
    (np.float64(1.5), np.float32(2)),
    (np.int64(3), True),
    (torch.tensor(3), torch.tensor(2.5, dtype=torch.float64)),
]


@pytest.mark.parametrize(("a", "b"), NUMBERS, ids=lambda x: f"{type(x).__name__}-{getattr(x, 'dtype', '')}")
def test_numbers_of_the_host(a: Any, b: Any) -> None:
    def function(x: Tensor) -> tuple[Tensor, Any]:
        return torch.where(x > b, x * a, b + x), a * 2

    x = torch.randn(10)
    call = compiled(function)
    for _ in range(2):
        actual, doubled = call(x.to(DEVICE))
        assert_same(actual, function(x)[0])
        assert doubled == a * 2 and (not isinstance(a, Tensor) or doubled.device.type == "cpu")


def test_numbers_change_without_another_compilation() -> None:
    torch._dynamo.reset()
    call = torch.compile(lambda x, a, b: x * a + b, backend="webgpu", fullgraph=True, dynamic=True)
    x = torch.randn(10)
    before = graphs()
    for i in range(5):
        assert_same(call(x.to(DEVICE), 0.1 * i + 0.05, torch.tensor(i + 0.25)), x * (0.1 * i + 0.05) + (i + 0.25))
    assert graphs() - before <= 2, "one for the first number, one for all others"


@pytest.mark.parametrize("backend", ["webgpu", "aot_eager"])
def test_checkpointing_draws_a_mask_again(backend: str) -> None:
    """Dropout whose block is recomputed, also where two forwards come before their backwards."""
    linear = nn.Linear(16, 16).to(DEVICE)

    def function(x: Tensor) -> Tensor:
        return checkpoint(lambda x: F.dropout(F.gelu(linear(x)), 0.5), x, use_reentrant=False)

    def gradient_with(mask: Tensor, x: Tensor) -> Tensor:
        x = x.detach().clone().requires_grad_()
        (F.gelu(linear(x)) * mask).sum().backward()
        assert x.grad is not None
        return x.grad

    torch._dynamo.reset()
    call = torch.compile(function, backend=backend, fullgraph=True)
    masks: list[Tensor] = []
    for passes in (1, 2, 2):
        xs = [torch.randn(64, 16).to(DEVICE).requires_grad_() for _ in range(passes)]
        with on_device(waits=None) as results:
            results += [call(x) for x in xs]
            for result in results:
                result.sum().backward()
        for x, y in zip(xs, results, strict=True):
            mask = (y.detach() != 0).float() * 2
            torch.testing.assert_close(x.grad, gradient_with(mask, x), rtol=1e-4, atol=1e-5)
            masks.append(mask.cpu())
    assert all(0.4 < mask.mean() / 2 < 0.6 for mask in masks)
    assert len({mask.numpy().tobytes() for mask in masks}) == len(masks), "every pass has a mask of its own"


def test_error_for_tensors_of_the_cpu() -> None:
    functions: tuple[Callable[..., Any], ...] = (nn.Linear(3, 3), lambda x: x + 1)
    for function in functions:
        with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=r'call \.to\("webgpu"\) on both') as raised:
            compiled(function)(torch.randn(2, 3))
        assert str(raised.value).count("webgpu_backend") == 0
