"""How many dispatches compiled programs take: the figure that no machine's speed changes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.compile.support import compiled, count
from tests.support import DEVICE, assert_same, to_device


def settled(function: Callable[..., Any], *args: Any) -> tuple[Any, int]:
    """The result of a call, and the dispatches of one that has been made before."""
    result = function(*args)
    function(*args)
    return result, count(function, *args)


def randn(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def chain(x: Tensor, y: Tensor) -> Tensor:
    for _ in range(100):
        x = x + y
    return x


def rms_norm(x: Tensor, weight: Tensor) -> Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * weight


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


def norm_and_rotary(x: Tensor, weight: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    """q and k of [batch, heads, positions, 2 * 32], normalised and rotated."""
    q, k = rms_norm(x, weight).chunk(2, -1)
    return rotated(q, cos, sin), rotated(k, cos, sin)


def biased_and_gelu(x: Tensor, w: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    y = F.linear(x, w, b)
    return y, F.gelu(y.view(4, 4, 64))


FUSED = [
    ("a chain of 100 adds", chain, (randn(1000), randn(1000)), 1),
    ("gelu(x * w + b)", lambda x, w, b: F.gelu(x * w + b), (randn(64, 96), randn(96), randn(96)), 1),
    ("softmax", lambda x: torch.softmax(x, -1), (randn(32, 100),), 1),
    (
        "layer_norm, residual and gelu",
        lambda x, y, w, b: F.gelu(F.layer_norm(x + y, (96,), w, b)),
        (randn(32, 96), randn(32, 96), randn(96), randn(96)),
        1,
    ),
    ("rms_norm", rms_norm, (randn(32, 96), randn(96)), 1),
    ("rms_norm and rotary", norm_and_rotary, (randn(2, 4, 8, 64), randn(64), randn(8, 32), randn(8, 32)), 2),
    ("two products", lambda x, a, b: F.gelu(x @ a) @ b, (randn(16, 32), randn(32, 64), randn(64, 8)), 2),
    ("a chain behind a product", lambda x, w, b, r: F.gelu(x @ w + b) * 2 + r,
     (randn(16, 32), randn(32, 64), randn(64), randn(16, 64)), 1),
    ("a sum behind a product, which is a result too", biased_and_gelu, (randn(16, 32), randn(64, 32), randn(64)), 1),
]  # fmt: skip


@pytest.mark.parametrize(("function", "args", "launches"), [row[1:] for row in FUSED], ids=[row[0] for row in FUSED])
def test_fused(function: Callable[..., Any], args: tuple[Tensor, ...], launches: int) -> None:
    result, dispatches = settled(compiled(function), *to_device(args))
    assert_same(result, function(*args), rtol=1e-4, atol=1e-5, strides=False)
    assert dispatches <= launches


class Block(nn.Module):
    """Pre-norm, causal attention, GELU."""

    def __init__(self, width: int = 64, heads: int = 4) -> None:
        super().__init__()
        self.norm1, self.norm2, self.heads = nn.LayerNorm(width), nn.LayerNorm(width), heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, positions, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, positions, 3, self.heads, width // self.heads)
        mixed = F.scaled_dot_product_attention(*qkv.permute(2, 0, 3, 1, 4), is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, positions, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class LlamaBlock(nn.Module):
    """RMS norm, rotary embedding, grouped queries, SwiGLU; with a cache of fixed length for decoding."""

    def __init__(self, width: int = 64, heads: int = 4, key_heads: int = 2, longest: int = 32) -> None:
        super().__init__()
        self.heads, self.key_heads, self.size = heads, key_heads, width // heads
        self.norm1, self.norm2 = (nn.Parameter(torch.ones(width)) for _ in range(2))
        self.qkv = nn.Linear(width, (heads + 2 * key_heads) * self.size, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gate_up, self.down = nn.Linear(width, 4 * width, bias=False), nn.Linear(2 * width, width, bias=False)
        angles = torch.arange(longest)[:, None] / 10000 ** (torch.arange(self.size) % (self.size // 2) / self.size)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())
        self.register_buffer("keys", torch.zeros(1, key_heads, longest, self.size))
        self.register_buffer("values", torch.zeros(1, key_heads, longest, self.size))

    def attended(self, x: Tensor, places: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        batch, positions, _ = x.shape
        sizes = [self.heads * self.size, self.key_heads * self.size, self.key_heads * self.size]
        parts = [
            t.view(batch, positions, -1, self.size).transpose(1, 2)
            for t in self.qkv(rms_norm(x, self.norm1)).split(sizes, -1)
        ]
        cos, sin = self.cos[places], self.sin[places]
        return rotated(parts[0], cos, sin), rotated(parts[1], cos, sin), parts[2]

    def finished(self, x: Tensor, mixed: Tensor) -> Tensor:
        x = x + self.out(mixed.transpose(1, 2).reshape(x.shape))
        gate, up = self.gate_up(rms_norm(x, self.norm2)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.attended(x, torch.arange(x.shape[1], device=x.device))
        return self.finished(x, F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True))

    def decode(self, x: Tensor, place: Tensor) -> Tensor:
        q, k, v = self.attended(x, place)
        self.keys.index_copy_(2, place, k)
        self.values.index_copy_(2, place, v)
        mask = torch.arange(self.keys.shape[2], device=x.device) <= place
        return self.finished(
            x, F.scaled_dot_product_attention(q, self.keys, self.values, mask[None, None, None], enable_gqa=True)
        )


def gradients(model: nn.Module, loss: Tensor) -> list[Tensor]:
    model.zero_grad()
    loss.backward()
    return [p.grad for p in model.parameters() if p.grad is not None]


def test_transformer_block() -> None:
    torch.manual_seed(0)
    model, x = Block(), randn(2, 16, 64)
    expected = model(x)
    result, dispatches = settled(torch.no_grad()(compiled(model.to(DEVICE))), x.to(DEVICE))
    assert_same(result, expected.detach(), rtol=1e-4, atol=1e-5)
    assert dispatches <= 8


def test_llama_decodes() -> None:
    torch.manual_seed(0)
    model = LlamaBlock()
    steps = [randn(1, 1, 64) + i for i in range(4)]
    with torch.no_grad():
        expected = [model.decode(x, torch.tensor([i])) for i, x in enumerate(steps)]
        model.keys.zero_()
        model.values.zero_()
        model.to(DEVICE)
        step = compiled(model.decode)
        places = [torch.tensor([i], device=DEVICE) for i in range(4)]
        for i, x in enumerate(steps):
            assert_same(step(x.to(DEVICE), places[i]), expected[i], rtol=1e-4, atol=1e-5)
        assert count(step, steps[0].to(DEVICE), places[0]) <= 10


def test_llama_trains() -> None:
    torch.manual_seed(0)
    model, x = LlamaBlock(), randn(2, 16, 64)
    expected = [g.clone() for g in gradients(model, model(x).square().mean())]
    model.to(DEVICE)
    moved = x.to(DEVICE)
    loss_of = compiled(lambda x: model(x).square().mean())
    for _ in range(2):
        found = gradients(model, loss_of(moved))
    for one, other in zip(found, expected, strict=True):
        assert_same(one, other, rtol=1e-3, atol=1e-5)
    assert count(lambda: gradients(model, loss_of(moved))) <= 22


class Classifier(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(
            nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Dropout(0.25), nn.Linear(32 * 49, 10),
        )  # fmt: skip


@pytest.mark.parametrize("fused", [False, True])
def test_image_classifier_trains_in_half_the_dispatches(fused: bool) -> None:
    images, labels = randn(8, 1, 28, 28).to(DEVICE), torch.arange(8, device=DEVICE)

    def step_of(compile_it: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Callable[[], float]:
        torch.manual_seed(0)
        model = Classifier().to(DEVICE)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=fused)
        loss_of = compile_it(lambda: F.cross_entropy(model(images), labels))
        update = compile_it(optimizer.step)

        def step() -> float:
            optimizer.zero_grad()
            loss = loss_of()
            loss.backward()
            update()
            return loss.item()

        return step

    torch._dynamo.reset()
    eager = step_of(lambda function: function)
    step = step_of(lambda function: torch.compile(function, backend="webgpu"))
    losses = [step() for _ in range(6)]
    assert losses[-1] < losses[0] / 2
    assert math.isfinite(losses[-1])
    eager()
    assert count(step) <= 0.5 * count(eager)


def test_optimizer_updates_as_many_parameters_at_once_as_can_be_bound() -> None:
    def step_of(device: str, **options: Any) -> tuple[torch.optim.Optimizer, list[nn.Parameter]]:
        parameters = [nn.Parameter(randn(3 + i % 4, 8).to(device)) for i in range(100)]
        for i, parameter in enumerate(parameters):
            parameter.grad = randn(*parameter.shape).to(device) * (i + 1)
        return torch.optim.AdamW(parameters, lr=1e-2, **options), parameters

    torch._dynamo.reset()
    optimizer, found = step_of(DEVICE)
    reference, expected = step_of("cpu")
    step = torch.compile(optimizer.step, backend="webgpu")
    for _ in range(3):
        step()
        reference.step()
    # Parameters, states and gradients that keep their memory are in segments: the counters of steps, then all others.
    assert count(step) <= 2
    reference.step()
    for _ in range(6):
        for parameter in found:
            assert parameter.grad is not None
            parameter.grad = parameter.grad * 1
        launches = count(step)
        reference.step()
    for one, other in zip(found, expected, strict=True):
        assert_same(one.detach(), other.detach(), rtol=1e-4, atol=1e-6)
    # New gradients take a binding each, beside the segment's.
    bindings = min(32, torch.webgpu.get_device_properties().limits["maxStorageBuffersPerShaderStage"])
    assert launches <= 1 + math.ceil(100 / (bindings - 1))
