"""The work whose time on the device is compared with PyTorch's on the CPU: one row each, bars as ratios to the CPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

M = 1 << 20
Inputs = tuple[torch.Tensor | nn.Module, ...]


@dataclass(frozen=True)
class Workload:
    """`run` takes the inputs, which are made on the CPU and moved; its results are compared too, so it must have one
    right answer (the values of a sort, not the order of equal elements)."""

    name: str
    bar: float | None  # at most so many times the CPU's time
    inputs: Callable[[], Inputs]
    run: Callable[..., torch.Tensor]


def rand(*shape: int) -> Callable[[], Inputs]:
    return lambda: (torch.rand(*shape),)


def randn(*shapes: tuple[int, ...]) -> Callable[[], Inputs]:
    return lambda: tuple(torch.randn(shape) for shape in shapes)


def module(make: Callable[[], nn.Module], *shape: int) -> Callable[[], Inputs]:
    return lambda: (make().eval(), torch.randn(shape))


def call(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return model(x)


def halves(*shapes: tuple[int, ...]) -> Callable[[], Inputs]:
    return lambda: tuple(torch.randn(shape).half() for shape in shapes)


def gradients(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """A step of training without its update: forward, and backward to the input and the parameters."""
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        made = torch.autograd.grad(model(x).square().mean(), (x, *model.parameters()))
    return torch.cat([gradient.flatten() for gradient in made])


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


def positive_inputs() -> Inputs:
    x = torch.randn(256, 256)
    return (x @ x.mT + 256 * torch.eye(256),)


def system_inputs() -> Inputs:
    return torch.randn(256, 256) + 16 * torch.eye(256), torch.randn(256, 1)


def gather_inputs() -> Inputs:
    return torch.randn(2048, 1024), torch.randint(1024, (2048, 1024))


def embedding_inputs() -> Inputs:
    return torch.randint(32_000, (8, 512)), torch.randn(32_000, 512)


def lstm(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return model(x)[0]


def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, weight.shape, weight, bias)


def layer_norm_backward(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    with torch.enable_grad():
        leaf = x.detach().requires_grad_()
        return torch.autograd.grad(layer_norm(leaf, weight, bias), leaf, x)[0]


def log_softmax_backward(x: torch.Tensor) -> torch.Tensor:
    with torch.enable_grad():
        leaf = x.detach().requires_grad_()
        return torch.autograd.grad(leaf.log_softmax(1), leaf, x)[0]


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def decode(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)


def bilinear(x: torch.Tensor) -> torch.Tensor:
    return F.interpolate(x, scale_factor=2.0, mode="bilinear")


def grid_inputs() -> Inputs:
    return torch.randn(4, 64, 56, 56), torch.rand(4, 56, 56, 2) * 2 - 1


def grid_sample(x: torch.Tensor, grid: torch.Tensor) -> torch.Tensor:
    return F.grid_sample(x, grid, align_corners=False)


def attention_backward(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    with torch.enable_grad():
        leaves = [x.detach().requires_grad_() for x in (q, k, v)]
        return torch.cat(torch.autograd.grad(attention(*leaves), leaves, v))


def attention_half(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return attention(q, k, v).float()


POINTWISE = (
    Workload("add 4M", 4.0, randn((4 * M,), (4 * M,)), torch.add),
    Workload("gelu (tanh) 4M", 0.8, randn((4 * M,)), lambda x: F.gelu(x, approximate="tanh")),
    Workload("gelu (erf) 4M", None, randn((4 * M,)), F.gelu),
)

# Sums of numbers that do not cancel, so that the order of the additions does not show.
REDUCTIONS = (
    Workload("sum of dim 1 of 2048x2048", 6.0, rand(2048, 2048), lambda x: x.sum(1)),
    Workload("sum of dim 0 of 2048x2048", 2.5, rand(2048, 2048), lambda x: x.sum(0)),
    Workload("sum of all of 2048x2048", 5.0, rand(2048, 2048), lambda x: x.sum()),
    Workload("softmax 2048x1024", 3.5, randn((2048, 1024)), lambda x: x.softmax(1)),
    Workload("log_softmax 2048x1024, and backward", None, randn((2048, 1024)), log_softmax_backward),
    Workload("argmax of dim 1 of 2048x2048", None, randn((2048, 2048)), lambda x: x.argmax(1)),
)

ORDER = (
    Workload("cumsum of dim 1 of 2048x2048", None, rand(2048, 2048), lambda x: x.cumsum(1)),
    Workload("sort 1M", None, randn((M,)), lambda x: x.sort().values),
    Workload("gather 2048x1024", None, gather_inputs, lambda x, index: x.gather(1, index)),
    Workload("embedding 32000x512, 8x512 tokens", None, embedding_inputs, F.embedding),
)

PRODUCTS = (
    Workload("matmul 512", 4.5, randn((512, 512), (512, 512)), torch.mm),
    Workload("matmul 1024", 5.0, randn((1024, 1024), (1024, 1024)), torch.mm),
    Workload("MLP 256-512-512-10, batch 32", 4.0, module(mlp, 32, 256), call),
    Workload("linear 32x512x512, float16", None, halves((32, 512), (512, 512), (512,)), F.linear),
    Workload("bmm 64x128x64x128", None, randn((64, 128, 64), (64, 64, 128)), torch.bmm),
    Workload("gemv 576->1536", None, randn((1, 576), (1536, 576)), F.linear),
    Workload("gemv 576->1536, float16", None, halves((1, 576), (1536, 576)), F.linear),
    Workload("gemv 576->49152", None, randn((1, 576), (49152, 576)), F.linear),
    Workload("gemv 576->49152, float16", None, halves((1, 576), (49152, 576)), F.linear),
    Workload("conv2d 1x64x56x56 3x3", 5.0, module(lambda: nn.Conv2d(64, 64, 3, padding=1), 1, 64, 56, 56), call),
    Workload("conv2d 1x64x56x56 1x1", 3.0, module(lambda: nn.Conv2d(64, 64, 1), 1, 64, 56, 56), call),
    Workload(
        *("conv2d 1x64x56x56 3x3 depthwise", 2.0),
        *(module(lambda: nn.Conv2d(64, 64, 3, padding=1, groups=64), 1, 64, 56, 56), call),
    ),
    Workload("conv2d 1x3x224x224 7x7 stride 2", None, module(lambda: nn.Conv2d(3, 64, 7, 2, 3), 1, 3, 224, 224), call),
    Workload("conv2d 1x64x56x56 3x3 stride 2", None, module(lambda: nn.Conv2d(64, 128, 3, 2, 1), 1, 64, 56, 56), call),
    Workload(
        *("conv_transpose2d 1x64x28x28 4x4 stride 2", None),
        *(module(lambda: nn.ConvTranspose2d(64, 32, 4, 2, 1), 1, 64, 28, 28), call),
    ),
    Workload("conv1d 4x64x1024 5", None, module(lambda: nn.Conv1d(64, 64, 5, padding=2), 4, 64, 1024), call),
    Workload(
        *("conv2d 4x64x28x28 3x3, gradients", None),
        *(module(lambda: nn.Conv2d(64, 64, 3, padding=1), 4, 64, 28, 28), gradients),
    ),
    Workload(
        *("conv2d 4x64x28x28 3x3 depthwise, gradients", None),
        *(module(lambda: nn.Conv2d(64, 64, 3, padding=1, groups=64), 4, 64, 28, 28), gradients),
    ),
)

LAYERS = (
    Workload("attention 1x8x512x64, causal", 4.0, randn(*[(1, 8, 512, 64)] * 3), attention),
    Workload("attention 1x8x512x64, causal, and backward", None, randn(*[(1, 8, 512, 64)] * 3), attention_backward),
    Workload("attention 1x8x512x64, causal, float16", None, halves(*[(1, 8, 512, 64)] * 3), attention_half),
    Workload("decode of one query over 512 keys", 5.0, randn((1, 9, 1, 64), (1, 3, 512, 64), (1, 3, 512, 64)), decode),
    Workload("decode of one query over 4096 keys", None, randn((1, 8, 1, 64), *[(1, 8, 4096, 64)] * 2), decode),
    Workload("layer_norm 2048x1024", 4.5, randn((2048, 1024), (1024,), (1024,)), layer_norm),
    Workload("layer_norm 2048x1024, and backward", None, randn((2048, 1024), (1024,), (1024,)), layer_norm_backward),
    Workload("layer_norm 512x4096", None, randn((512, 4096), (4096,), (4096,)), layer_norm),
    Workload(
        *("batch_norm 16x64x56x56, training", None),
        *(randn((16, 64, 56, 56)), lambda x: F.batch_norm(x, None, None, training=True)),
    ),
    Workload("max_pool2d 16x64x56x56 3x3", None, randn((16, 64, 56, 56)), lambda x: F.max_pool2d(x, 3, 2, 1)),
    Workload("avg_pool2d 16x64x56x56 3x3", None, randn((16, 64, 56, 56)), lambda x: F.avg_pool2d(x, 3, 2, 1)),
    Workload("upsample_bilinear2d 4x64x56x56 by 2", None, randn((4, 64, 56, 56)), bilinear),
    Workload("grid_sample 4x64x56x56", None, grid_inputs, grid_sample),
    Workload("LSTM 128-256, 32 steps of batch 8", None, module(lambda: nn.LSTM(128, 256), 32, 8, 128), lstm),
)

LINALG = (
    Workload("cholesky 256", None, positive_inputs, torch.linalg.cholesky),
    Workload("solve 256, one right side", None, system_inputs, torch.linalg.solve),
    Workload("inv 32x64x64", None, lambda: (torch.randn(32, 64, 64) + 16 * torch.eye(64),), torch.linalg.inv),
    Workload("qr 128", None, randn((128, 128)), lambda x: torch.linalg.qr(x).R),
)

WORKLOADS = (*POINTWISE, *REDUCTIONS, *ORDER, *PRODUCTS, *LAYERS, *LINALG)
