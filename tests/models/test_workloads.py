"""Small models of the common kinds, trained for a step and run: the CPU's numbers, with nothing on the CPU."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.support import DEVICE, assert_same, on_device, to_device

NEEDED = sorted(
    {
        line.split()[2].partition("[")[0]
        for line in (Path(__file__).parent / "models_need.txt").read_text().splitlines()
        if not line.startswith("#")
    }
)
COMPOSITE = ("CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional", "CompositeImplicitAutograd")


@pytest.mark.parametrize("name", NEEDED)
def test_what_models_need_has_a_kernel(name: str) -> None:
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    assert has(name, "PrivateUse1") or any(has(name, key) for key in COMPOSITE), f"{name} would fall back"


class Block(nn.Module):
    """A transformer's, with grouped query heads and rotated positions, as in Llama."""

    def __init__(self, width: int, heads: int, key_heads: int) -> None:
        super().__init__()
        self.heads, self.key_heads, self.size = heads, key_heads, width // heads
        self.before, self.between = nn.RMSNorm(width), nn.RMSNorm(width)
        self.query = nn.Linear(width, width, bias=False)
        self.key, self.value = (nn.Linear(width, key_heads * self.size, bias=False) for _ in range(2))
        self.out = nn.Linear(width, width, bias=False)
        self.gate, self.up = (nn.Linear(width, 2 * width, bias=False) for _ in range(2))
        self.down = nn.Linear(2 * width, width, bias=False)

    def rotate(self, x: torch.Tensor) -> torch.Tensor:
        places = torch.arange(x.shape[2], device=x.device)[:, None]
        angles = places * 100.0 ** (-torch.arange(0, self.size, 2, device=x.device) / self.size)
        left, right = x.chunk(2, -1)
        return torch.cat((left * angles.cos() - right * angles.sin(), left * angles.sin() + right * angles.cos()), -1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        y = self.before(x)
        q = self.rotate(self.query(y).view(batch, length, self.heads, self.size).transpose(1, 2))
        k = self.rotate(self.key(y).view(batch, length, self.key_heads, self.size).transpose(1, 2))
        v = self.value(y).view(batch, length, self.key_heads, self.size).transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        y = self.between(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Language(nn.Module):
    """Tied embeddings, as in GPT-2."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, 32)
        self.blocks = nn.Sequential(*(Block(32, 4, 2) for _ in range(2)))
        self.norm = nn.LayerNorm(32)
        self.head = nn.Linear(32, 50, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.blocks(self.embedding(tokens)))).flatten(0, 1)


class Residual(nn.Module):
    def __init__(self, inner: int, outer: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(outer) for _ in range(3))
        self.side = nn.Conv2d(inner, outer, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norms[1](self.second(F.relu(self.norms[0](self.first(x)))))
        return F.relu(y + self.norms[2](self.side(x)))


def resnet() -> nn.Module:
    stem = (nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
    return nn.Sequential(
        *stem, Residual(8, 8, 1), Residual(8, 16, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10)
    )


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down, self.inner = nn.Conv2d(3, 8, 3, 2, 1), nn.Conv2d(8, 8, 3, 1, 1)
        self.norm, self.up = nn.GroupNorm(2, 8), nn.ConvTranspose2d(8, 8, 4, 2, 1)
        self.last = nn.Conv2d(11, 10, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.gelu(self.norm(self.down(x)))
        y = F.interpolate(F.avg_pool2d(self.inner(y), 2), scale_factor=2.0, mode="bilinear") + y
        return self.last(torch.cat((self.up(y), x), 1)).flatten(2).transpose(1, 2).flatten(0, 1)


class Recurrent(nn.Module):
    def __init__(self, kind: type[nn.RNNBase]) -> None:
        super().__init__()
        self.layers = kind(6, 12, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(24, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.layers(x)[0][:, -1])


def encoder() -> nn.Module:
    layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
    return nn.Sequential(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Flatten(), nn.Linear(96, 10))


def tokens() -> torch.Tensor:
    return torch.randint(50, (2, 12))


IMAGES = (4, 3, 32, 32)
WORKLOADS: dict[str, tuple[Callable[[], nn.Module], Callable[[], torch.Tensor], int]] = {
    "language": (Language, tokens, 50),
    "encoder": (encoder, lambda: torch.randn(4, 6, 16), 10),
    "resnet": (resnet, lambda: torch.randn(IMAGES), 10),
    "unet": (UNet, lambda: torch.randn(2, 3, 16, 16), 10),
    "lstm": (lambda: Recurrent(nn.LSTM), lambda: torch.randn(3, 7, 6), 10),
    "gru": (lambda: Recurrent(nn.GRU), lambda: torch.randn(3, 7, 6), 10),
}
OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "sgd": lambda weights: torch.optim.SGD(weights, lr=0.05, momentum=0.9),
    "adamw": lambda weights: torch.optim.AdamW(weights, lr=1e-3, fused=True),
}


def train(model: nn.Module, make: Callable[[Any], torch.optim.Optimizer], x: torch.Tensor, target: torch.Tensor) -> Any:
    """Losses of three steps and the norm of the last gradient."""
    optimizer, losses = make(model.parameters()), []
    for _ in range(3):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), target)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.detach())
    return [*losses, norm.detach()]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", WORKLOADS)
def test_training(name: str, optimizer: str) -> None:
    make, inputs, classes = WORKLOADS[name]
    torch.manual_seed(0)
    model, x = make(), inputs()
    with torch.no_grad():
        target = torch.randint(classes, (model.eval()(x).shape[0],))
    model.train()
    there = copy.deepcopy(model).to(DEVICE)
    expected = train(model, OPTIMIZERS[optimizer], x, target)
    with on_device():
        actual = train(there, OPTIMIZERS[optimizer], *to_device((x, target)))
    assert_same(actual, expected, name, rtol=1e-3, atol=1e-4)  # three steps add up what each rounds
    with torch.no_grad(), on_device():
        result = there.eval()(to_device(x))
    assert_same(result, model.eval()(x).detach(), f"{name} after training", strides=False, rtol=1e-2, atol=1e-2)


def test_tied_weights_stay_tied() -> None:
    model = Language().to(DEVICE)
    assert model.head.weight is model.embedding.weight
