"""What torch.compile gains: the same function eager and compiled, in turns, in one process on the device."""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.row import Bar, Result, Row
from benchmarks.throughput import calls_per_round, timed

Tensors = tuple[Tensor, ...]


@dataclass(frozen=True)
class Compiled:
    """A function of tensors, and how many times faster than eager it has to be."""

    name: str
    bar: float | None
    inputs: Callable[[], Tensors]
    run: Callable[..., Any]


def chain(x: Tensor, y: Tensor) -> Tensor:
    for _ in range(100):
        x = x + y
    return x


def gelu_mlp(x: Tensor, a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
    return x + F.linear(F.gelu(F.linear(x, a, b)), c, d)


def norm_residual(x: Tensor, y: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.gelu(F.layer_norm(x + y, w.shape, w, b))


def masked_softmax(x: Tensor, mask: Tensor) -> Tensor:
    return torch.softmax((x * 0.125).masked_fill(mask, -math.inf), -1)


def norm_rotary(x: Tensor, w: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    x = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * w
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


class TinyGPT(nn.Module):
    def __init__(self, width: int = 128, heads: int = 4, layers: int = 2, words: int = 256) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(64, width)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True)
            for _ in range(layers)
        )
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.words(tokens) + self.places.weight[: tokens.shape[1]]
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1], device=tokens.device)
        for block in self.blocks:
            x = block(x, src_mask=mask, is_causal=True)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), tokens.flatten())


def randn(*shapes: tuple[int, ...]) -> Callable[[], Tensors]:
    return lambda: tuple(torch.randn(shape, device="webgpu") for shape in shapes)


WIDE = (1024, 768)
ROWS_OF = (
    Compiled("chain of 100 adds of 1k", 25, randn((1000,), (1000,)), chain),
    Compiled("gelu MLP block", 1.8, randn((64, 256), (1024, 256), (1024,), (256, 1024), (256,)), gelu_mlp),
    Compiled("layer_norm + residual + gelu", 1.8, randn(WIDE, WIDE, (768,), (768,)), norm_residual),
    Compiled("masked softmax", 1.8, lambda: (torch.randn(WIDE, device="webgpu"),
                                             torch.rand(WIDE, device="webgpu") < 0.3), masked_softmax),
    Compiled("rms_norm + rotary", 1.8, randn((8, 12, 128, 64), (64,), (128, 64), (128, 64)), norm_rotary),
    Compiled("add 1M", 1 / 1.05, randn((1 << 20,), (1 << 20,)), torch.add),
    Compiled("gelu 1M", 1 / 1.05, randn((1 << 20,)), F.gelu),
    Compiled("softmax 1024x768", 1 / 1.05, randn(WIDE), functools.partial(torch.softmax, dim=-1)),
    Compiled("sum of rows 1024x768", 1 / 1.05, randn(WIDE), functools.partial(torch.sum, dim=-1)),
)  # fmt: skip


def compare(eager: Callable[[], Any], compiled: Callable[[], Any], rounds: int) -> Result:
    def waiting(call: Callable[[], Any]) -> Callable[[], None]:
        def run() -> None:
            call()
            torch.webgpu.synchronize()

        return run

    first, second = waiting(eager), waiting(compiled)
    result = Result(first_call_ms=timed(second) * 1e3)
    counts = calls_per_round(first), calls_per_round(second)
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for call, count, found in zip((first, second), counts, times, strict=True):
            found.append(timed(call, count))
    eager_s, compiled_s = map(statistics.median, times)
    result.device_ms = compiled_s * 1e3
    result.value = eager_s / compiled_s
    return result


def measure(rounds: int, row: Compiled) -> Result:
    torch.manual_seed(0)
    inputs = row.inputs()
    compiled = torch.compile(row.run, backend="webgpu")
    with torch.no_grad():
        result = compare(lambda: row.run(*inputs), lambda: compiled(*inputs), rounds)
        torch.testing.assert_close(compiled(*inputs), row.run(*inputs), rtol=1e-3, atol=1e-4)
    return result


def measure_training(rounds: int) -> Result:
    """Forward, backward and the update of a small language model."""

    def step_of(compile_it: bool) -> Callable[[], Any]:
        torch.manual_seed(0)
        model = TinyGPT().to("webgpu")
        tokens = torch.randint(256, (4, 64), device="webgpu")
        optimizer = torch.optim.AdamW(model.parameters(), fused=True)
        loss_of = torch.compile(model, backend="webgpu") if compile_it else model

        def step() -> None:
            optimizer.zero_grad()
            loss_of(tokens).backward()
            optimizer.step()

        return step

    return compare(step_of(False), step_of(True), rounds)


def _row(name: str, bar: float | None, run: Callable[[int], Result]) -> Row:
    environment = {"TORCH_WEBGPU_FALLBACK": "quiet", "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}
    return Row(f"compiled: {name}", "compiled", "x eager", bar and Bar(bar, at_least=True), run, environment)


ROWS = (
    *(_row(row.name, row.bar, functools.partial(measure, row=row)) for row in ROWS_OF),
    _row("training step of a tiny GPT", 1.5, measure_training),
)
