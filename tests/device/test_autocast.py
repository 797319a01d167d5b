"""torch.autocast and torch.amp.GradScaler on the device, and models in half precision."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.support import DEVICE, on_device

HALVES = (torch.float16, torch.bfloat16)
EPSILON = {torch.float16: 2e-3, torch.bfloat16: 1.6e-2}


@pytest.fixture(params=HALVES, ids=str)
def half(request: pytest.FixtureRequest) -> torch.dtype:
    return request.param


def floats(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def test_which_ops_run_in_which_dtype(half: torch.dtype) -> None:
    x, y = floats(4, 4).to(DEVICE), floats(4, 4).to(DEVICE)
    image, kernel = floats(1, 2, 5, 5).to(DEVICE), floats(3, 2, 3, 3).to(DEVICE)
    low, wide = half, torch.float32
    with torch.autocast(DEVICE, dtype=half):
        assert torch.is_autocast_enabled(DEVICE) and torch.get_autocast_dtype(DEVICE) == half
        made = (x @ y).dtype, F.linear(x, y).dtype, torch.einsum("ij,jk", x, y).dtype, F.conv2d(image, kernel).dtype
        assert made == (low,) * 4
        assert F.scaled_dot_product_attention(x[None, None], y[None, None], x[None, None]).dtype == low
        z = x @ y
        for function in (torch.exp, torch.log1p, lambda v: v.pow(2), lambda v: F.mse_loss(v, x)):
            assert function(z).dtype == wide
        for function in (lambda v: v.softmax(0), torch.sum, lambda v: v.cumsum(0), torch.norm, lambda v: v.norm(dim=1)):
            assert function(z).dtype == wide
        assert z.sum(dtype=half).dtype == low  # what is asked for is kept
        assert F.layer_norm(z, (4,)).dtype == wide
        assert torch.addcmul(z, z, z).dtype == low and torch.addcmul(z, x, z).dtype == wide
        assert (z + z).dtype == low and (z + x).dtype == wide and z.relu().dtype == low
        assert torch.mm(x.to(torch.int32).float(), y).dtype == low
        with pytest.raises(RuntimeError, match="unsafe to autocast"):
            F.binary_cross_entropy(x.sigmoid(), y.sigmoid())
        assert F.binary_cross_entropy_with_logits(z, y.sigmoid()).dtype == wide
    assert not torch.is_autocast_enabled(DEVICE) and (x @ y).dtype == wide


def test_regions_nest(half: torch.dtype) -> None:
    x = floats(3, 3).to(DEVICE)
    with torch.autocast(DEVICE, dtype=half):
        with torch.autocast(DEVICE, enabled=False):
            assert (x @ x).dtype == torch.float32
            with torch.autocast(DEVICE, dtype=torch.float16):
                assert (x @ x).dtype == torch.float16
            assert (x @ x).dtype == torch.float32
        assert (x @ x).dtype == half

    @torch.autocast(DEVICE, dtype=half)
    def decorated(v: torch.Tensor) -> torch.Tensor:
        return v @ v

    assert decorated(x).dtype == half


def test_default_dtype_and_refused_ones() -> None:
    x = floats(3, 3).to(DEVICE)
    with torch.autocast(DEVICE):
        assert (x @ x).dtype == torch.get_autocast_dtype(DEVICE)
    with pytest.warns(UserWarning, match="not supported"), torch.autocast(DEVICE, dtype=torch.float64):
        assert (x @ x).dtype == torch.float32


def test_weights_are_cast_once(half: torch.dtype) -> None:
    weight, x = nn.Parameter(floats(8, 8).to(DEVICE)), floats(8, 8).to(DEVICE).to(half)

    def dispatches(cache: bool) -> int:
        with torch.autocast(DEVICE, dtype=half, cache_enabled=cache):
            F.linear(x, weight)
            before = torch.webgpu.memory_stats()["dispatches"]
            F.linear(x, weight)
            return torch.webgpu.memory_stats()["dispatches"] - before

    assert dispatches(True) == dispatches(False) - 1
    with torch.autocast(DEVICE, dtype=half):
        (F.linear(x, weight) + F.linear(x, weight)).float().sum().backward()
    assert weight.grad is not None and weight.grad.dtype == torch.float32


def test_custom_functions(half: torch.dtype) -> None:
    class Product(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type=DEVICE)
        def forward(ctx: Any, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(a, b)
            return a @ b

        @staticmethod
        @torch.amp.custom_bwd(device_type=DEVICE)
        def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            a, b = ctx.saved_tensors
            assert torch.is_autocast_enabled(DEVICE)  # as it was in the forward
            return gradient @ b.T, a.T @ gradient

    class Wide(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type=DEVICE, cast_inputs=torch.float32)
        def forward(ctx: Any, a: torch.Tensor) -> torch.Tensor:
            assert not torch.is_autocast_enabled(DEVICE) and a.dtype == torch.float32
            return a @ a

        @staticmethod
        @torch.amp.custom_bwd(device_type=DEVICE)
        def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
            return gradient

    a, b = (floats(4, 4).to(DEVICE).requires_grad_() for _ in range(2))
    with torch.autocast(DEVICE, dtype=half):
        product = Product.apply(a, b)
        assert product.dtype == half
        assert Wide.apply(product).dtype == torch.float32
    product.float().sum().backward()
    assert a.grad is not None and a.grad.dtype == torch.float32


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.norm = nn.Embedding(16, 32), nn.LayerNorm(32)
        self.project, self.out, self.head = nn.Linear(32, 96), nn.Linear(32, 32), nn.Linear(32, 16)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens)
        q, k, v = self.project(self.norm(x)).unflatten(-1, (3, 4, 8)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return self.head(F.gelu(x))


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 16))


def convolutions() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 16, 16))


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], torch.Tensor]]] = {
    "mlp": (mlp, lambda: floats(6, 12)),
    "transformer": (Transformer, lambda: torch.arange(24).view(2, 12) % 16),
    "convolutions": (convolutions, lambda: floats(4, 3, 6, 6)),
}


def gradients(model: nn.Module, x: torch.Tensor, autocast: torch.dtype | None = None) -> list[torch.Tensor]:
    with torch.autocast(x.device.type, dtype=autocast or torch.bfloat16, enabled=autocast is not None):
        made = model(x)
        loss = F.cross_entropy(made.flatten(0, -2), torch.arange(made.numel() // 16, device=x.device) % 16)
    return list(torch.autograd.grad(loss, list(model.parameters())))


def assert_near(actual: list[torch.Tensor], expected: list[torch.Tensor], slack: float) -> None:
    """As vectors: halves differ in their last bits, which the largest elements tell."""
    scale = max(float(y.float().norm()) for y in expected)
    for x, y in zip(actual, expected, strict=True):
        assert x.dtype == y.dtype
        error = float((x.cpu().float() - y.float()).norm())
        size = float(y.float().norm())
        assert error <= slack * max(size, 1e-2 * scale), f"{tuple(y.shape)}: {error} of {size}"


@pytest.mark.parametrize("name", MODELS)
def test_gradients_in_half_precision(name: str, half: torch.dtype) -> None:
    make, inputs = MODELS[name]
    torch.manual_seed(0)
    model, x = make().to(half), inputs()
    x = x.to(half) if x.is_floating_point() else x
    expected = gradients(model, x)
    with on_device() as results:
        results.append(gradients(copy.deepcopy(model).to(DEVICE), x.to(DEVICE)))
    assert_near(results[0], expected, 8 * EPSILON[half])


@pytest.mark.parametrize("name", MODELS)
def test_gradients_under_autocast(name: str, half: torch.dtype) -> None:
    make, inputs = MODELS[name]
    torch.manual_seed(0)
    model, x = make(), inputs()
    expected = gradients(model, x)
    with on_device() as results:
        results.append(gradients(copy.deepcopy(model).to(DEVICE), x.to(DEVICE), half))
    assert_near(results[0], expected, 8 * EPSILON[half])


@pytest.mark.parametrize("name", MODELS)
def test_models_in_half_precision_learn(name: str, half: torch.dtype) -> None:
    make, inputs = MODELS[name]
    torch.manual_seed(0)
    model, x = make().to(half).to(DEVICE), inputs()
    x = (x.to(half) if x.is_floating_point() else x).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    with on_device():
        for _ in range(12):
            made = model(x)
            loss = F.cross_entropy(made.flatten(0, -2), torch.arange(made.numel() // 16, device=DEVICE) % 16)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
    first, last = float(losses[0]), float(losses[-1])
    assert last < 0.9 * first, f"{first} -> {last}"


# GradScaler


def unscaled(device: str, dtype: torch.dtype, spoiled: float | None) -> tuple[list[torch.Tensor], torch.Tensor]:
    gradients = [floats(5, 7), floats(3), floats(130)]
    if spoiled is not None:
        gradients[1][2] = spoiled
    gradients = [x.to(dtype).to(device) for x in gradients]
    flat = floats(64).to(dtype).to(device)
    gradients += [flat[:21], flat[24:], floats(4, 6).to(device).t()]
    found = torch.zeros(1, device=device)
    torch._amp_foreach_non_finite_check_and_unscale_(gradients[:5], found, torch.full((1,), 0.25, device=device))
    torch._amp_foreach_non_finite_check_and_unscale_(gradients[5:], found, torch.full((1,), 0.25, device=device))
    return gradients, found


@pytest.mark.parametrize("spoiled", (None, float("inf"), float("-inf"), float("nan")))
@pytest.mark.parametrize("dtype", (torch.float32, torch.float16), ids=str)
def test_unscale(dtype: torch.dtype, spoiled: float | None) -> None:
    expected, found = unscaled("cpu", dtype, spoiled)
    with on_device() as results:
        actual, found_there = unscaled(DEVICE, dtype, spoiled)
        results.append(actual)
    assert found_there.item() == found.item() == (spoiled is not None)
    for x, y in zip(actual, expected, strict=True):
        torch.testing.assert_close(x.cpu(), y, rtol=0, atol=0, equal_nan=True)


def test_update_scale() -> None:
    def run(device: str) -> list[tuple[float, int]]:
        scale, tracker = torch.tensor([8.0], device=device), torch.zeros(1, dtype=torch.int32, device=device)
        seen = []
        for found in (0.0, 0.0, 0.0, 1.0, 0.0, 2.0, 0.0, 0.0):
            torch._amp_update_scale_(scale, tracker, torch.full((1,), found, device=device), 2.0, 0.25, 2)
            seen.append((scale.item(), int(tracker.item())))
        scale.fill_(2.0**127)
        for _ in range(2):  # a scale beyond float32 is not taken
            torch._amp_update_scale_(scale, tracker, torch.zeros(1, device=device), 2.0, 0.25, 1)
        return [*seen, (scale.item(), int(tracker.item()))]

    with on_device(waits=18):  # to see scale and tracker after each of nine steps
        actual = run(DEVICE)
    assert actual == run("cpu")


@pytest.mark.parametrize("form", ("foreach", "fused", "single"))
def test_scaled_training(form: str) -> None:
    """A scaler takes the steps of the CPU's: gradients clipped once unscaled, and a step left out that overflows."""

    def train(device: str) -> tuple[list[torch.Tensor], list[float]]:
        torch.manual_seed(0)
        model, x = mlp().to(device), floats(6, 12).to(device)
        options = {} if form == "single" else {form: True}
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01, **({"foreach": False} | options))
        scaler = torch.amp.GradScaler(device, init_scale=2.0**10, growth_interval=2)
        scales = []
        for step in range(5):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), torch.arange(6, device=device)) * (torch.inf if step == 2 else 1.0)
            scaler.scale(loss).backward()
            if step % 2 == 0:
                scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            scaler.step(optimizer)
            scaler.update()
            scales.append(scaler.get_scale())
        return [x.detach() for x in model.parameters()], scales

    expected, scales = train("cpu")
    with on_device(waits=None) as results:
        actual, scales_there = train(DEVICE)
        results.append(actual)
    assert scales_there == scales == [1024.0, 2048.0, 1024.0, 1024.0, 2048.0]
    for one, other in zip(actual, expected, strict=True):
        torch.testing.assert_close(one.cpu(), other, rtol=1e-5, atol=1e-6)


def test_scaler_refuses_what_cannot_be_unscaled() -> None:
    weight = nn.Parameter(torch.ones(3, device=DEVICE))
    optimizer, scaler = torch.optim.SGD([weight], lr=1.0), torch.amp.GradScaler(DEVICE)
    scaler.scale(weight.sum()).backward()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match=r"unscale_\(\) has already been called"):
        scaler.unscale_(optimizer)
    half = nn.Parameter(torch.ones(3, device=DEVICE, dtype=torch.float16))
    optimizer, scaler = torch.optim.SGD([half], lr=1.0), torch.amp.GradScaler(DEVICE)
    scaler.scale(half.sum()).backward()
    with pytest.raises(ValueError, match="Attempting to unscale FP16 gradients"):
        scaler.unscale_(optimizer)
