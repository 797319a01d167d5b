"""Compiles a few functions for device "webgpu" and shows times, dispatches and the WGSL of one fused kernel."""

import argparse
import math
import re
import sys
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from torch import Tensor

from torch_webgpu import device as webgpu

Function = Callable[..., Tensor]


def chain_of_adds(x: Tensor, y: Tensor) -> Tensor:
    for _ in range(100):
        x = x + y
    return x


def gelu_of_sum(x: Tensor, y: Tensor, b: Tensor) -> Tensor:
    return F.gelu(x * y + b)


def gelu_block(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.gelu(x @ w + b) * x


def layer_norm_residual(x: Tensor, y: Tensor) -> Tensor:
    return F.gelu(F.layer_norm(x + y, x.shape[-1:]))


def masked_softmax(x: Tensor, mask: Tensor) -> Tensor:
    return torch.softmax(x.masked_fill(mask, -math.inf), -1)


def examples() -> dict[str, tuple[Function, tuple[Tensor, ...]]]:
    torch.manual_seed(0)
    x, y, w = (torch.randn(256, 256, device="webgpu") for _ in range(3))
    b = torch.randn(256, device="webgpu")
    return {
        "a chain of 100 adds": (chain_of_adds, (torch.ones(1000, device="webgpu"), torch.ones(1000, device="webgpu"))),
        "gelu(x * y + b)": (gelu_of_sum, (x, y, b)),
        "gelu(x @ w + b) * x": (gelu_block, (x, w, b)),
        "gelu(layer_norm(x + y))": (layer_norm_residual, (x, y)),
        "softmax with a mask": (masked_softmax, (x, torch.rand(256, 256, device="webgpu") < 0.3)),
    }


def measured(function: Function, arguments: tuple[Tensor, ...], rounds: int) -> tuple[float, int]:
    """The best milliseconds of a call with its wait, and how many dispatches it takes."""
    best, dispatches = math.inf, 0
    for _ in range(rounds + 2):
        before, start = webgpu.memory_stats()["dispatches"], time.perf_counter()
        function(*arguments)
        webgpu.synchronize()
        best = min(best, time.perf_counter() - start)
        dispatches = webgpu.memory_stats()["dispatches"] - before
    return 1e3 * best, dispatches


def kernel_of(code: str) -> str:
    """The first kernel's own text in a generated module."""
    found = re.search(r"webgpu_runtime\.kernel\('[^']*', r'''\n(.*?)'''", code, re.DOTALL)
    return found[1] if found else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20, help="calls of each function; the best counts")
    options = parser.parse_args()
    if not webgpu.is_available():
        print(f"compile: {webgpu.unavailable_reason()}", file=sys.stderr)
        return 1
    from torch._inductor.utils import run_and_get_code

    console = Console(highlight=False)
    table = Table("function", "eager ms", "compiled ms", "gain", "dispatches", "difference")
    for column in table.columns[1:]:
        column.justify = "right"
    text = ""
    for name, (function, arguments) in examples().items():
        compiled = torch.compile(function, backend="webgpu")
        result, (code, *_) = run_and_get_code(compiled, *arguments)
        difference = (result - function(*arguments)).abs().max().item()
        (eager_ms, before), (compiled_ms, after) = (
            measured(f, arguments, options.rounds) for f in (function, compiled)
        )
        times = (f"{eager_ms:.2f}", f"{compiled_ms:.2f}", f"{eager_ms / compiled_ms:.1f}x")
        table.add_row(name, *times, f"{before} -> {after}", f"{difference:.1e}")
        text = kernel_of(code) if function is gelu_of_sum else text
    console.print(table)
    console.print(f"on {webgpu.get_device_name()}")
    console.print("\nThe one kernel of gelu(x * y + b):")
    console.print(text.strip(), markup=False, soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
