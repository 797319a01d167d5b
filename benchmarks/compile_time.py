"""What compiling a transformer block costs: first forward and backward in a new process, with cold and warm caches."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import tempfile
import time

from benchmarks.row import Bar, Result, Row


def first_step() -> float:
    """Seconds until the gradients are there; torch is imported before."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    block = nn.TransformerEncoderLayer(128, 4, 512, 0.0, "gelu", batch_first=True, norm_first=True).to("webgpu")
    x = torch.randn(4, 64, 128, device="webgpu")
    mask = nn.Transformer.generate_square_subsequent_mask(64, device="webgpu")
    torch.webgpu.synchronize()
    compiled = torch.compile(block, backend="webgpu")
    start = time.perf_counter()
    compiled(x, src_mask=mask, is_causal=True).square().mean().backward()
    torch.webgpu.synchronize()
    return time.perf_counter() - start


def run(cache: str) -> float:
    """In a new process with these caches: Inductor's graphs and AOTAutograd's, and the driver's kernels."""
    names = ("TORCHINDUCTOR_CACHE_DIR", "MESA_SHADER_CACHE_DIR")
    environment = {**os.environ, **{name: os.path.join(cache, name) for name in names}}
    environment.pop("TORCHINDUCTOR_FORCE_DISABLE_CACHES", None)
    command = [sys.executable, "-m", "benchmarks.compile_time"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout.splitlines()[-1])


def measure(_rounds: int, warm: bool) -> Result:
    with tempfile.TemporaryDirectory(prefix="bench-compile-") as cache:
        cold = run(cache)
        return Result(min(run(cache) for _ in range(2)) if warm else cold)


def _row(name: str, bar: float, warm: bool) -> Row:
    label = f"compiled: first step of a transformer block, {name} caches"
    return Row(label, "compiled", "s", Bar(bar), functools.partial(measure, warm=warm), {})


ROWS = (_row("cold", 20, False), _row("warm", 4, True))

if __name__ == "__main__":
    print(first_step())
