"""Common work, to count the dispatches that it takes: tests/ops/test_dispatch_counts.py holds the numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F

DEVICE = "webgpu"
Work = Callable[[], Any]


def randn(*shape: int) -> torch.Tensor:
    return torch.randn(shape, device=DEVICE)


def labels(most: int, *shape: int) -> torch.Tensor:
    return torch.randint(most, shape, device=DEVICE)


def assign(key: Any) -> Work:
    x = randn(64, 64)
    return lambda: x.__setitem__(key, 1.5)


def bound(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Work:
    return lambda: function(*args, **kwargs)


def lstm(backward: bool) -> Work:
    module = torch.nn.LSTM(32, 32).to(DEVICE)
    x = randn(16, 4, 32)
    if not backward:
        return lambda: module(x)
    out = module(x)[0]
    grad = torch.ones_like(out)
    return lambda: torch.autograd.grad(out, list(module.parameters()), grad, retain_graph=True)


# Each makes its inputs and gives the work to count.
WORK: dict[str, Callable[[], Work]] = {
    "add": lambda: bound(torch.add, randn(64, 64), 1),
    "x[i] = number": lambda: assign(3),
    "x[mask] = number": lambda: assign(randn(64, 64) > 0),
    "x[index] = number": lambda: assign(labels(64, 9)),
    "x[a:b] = number": lambda: assign(slice(5, 9)),
    "masked_fill": lambda: bound(randn(64, 64).masked_fill, randn(64, 64) > 0, 0.0),
    "where": lambda: bound(torch.where, randn(64, 64) > 0, randn(64, 64), 0.0),
    "sum": lambda: bound(randn(1 << 20).sum),
    "softmax": lambda: bound(randn(64, 1000).softmax, 1),
    "layer_norm": lambda: bound(F.layer_norm, randn(64, 768), (768,)),
    "linear": lambda: bound(F.linear, randn(64, 64), randn(32, 64), randn(32)),
    "attention": lambda: bound(F.scaled_dot_product_attention, *(randn(1, 4, 64, 32) for _ in range(3))),
    "cross_entropy": lambda: bound(F.cross_entropy, randn(64, 1000), labels(1000, 64)),
    "embedding": lambda: bound(F.embedding, labels(1000, 64), randn(1000, 64)),
    "one_hot": lambda: bound(F.one_hot, labels(10, 64), 10),
    "cat of 8": lambda: bound(torch.cat, [randn(3, 5) for _ in range(8)]),
    "cat of 64": lambda: bound(torch.cat, [randn(3, 5) for _ in range(64)], 1),
    "stack of 64": lambda: bound(torch.stack, [randn(3, 5) for _ in range(64)], -1),
    "sort of rows": lambda: bound(randn(16, 1000).sort),
    "topk of few rows": lambda: bound(randn(4, 100).topk, 5),
    "topk of a vocabulary": lambda: bound(randn(49152).topk, 50),
    "lstm of 16 steps": lambda: lstm(backward=False),
    "lstm of 16 steps, backward": lambda: lstm(backward=True),
    "multinomial": lambda: bound(torch.multinomial, randn(50257).abs(), 1),
}


def count(work: Work) -> tuple[int, int]:
    """Dispatches and waits, once kernels are compiled."""
    work()
    before = torch.webgpu.memory_stats()
    work()
    after = torch.webgpu.memory_stats()
    return after["dispatches"] - before["dispatches"], after["readbacks"] - before["readbacks"]


def main() -> None:
    print(f"{'dispatches and waits':<24}")
    for name, make in WORK.items():
        dispatches, waits = count(make())
        print(f"{name:<24}{dispatches:>4}{waits:>4}")


if __name__ == "__main__":
    main()
