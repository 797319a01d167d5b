"""Caches across processes, and kernels that are compiled side by side."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

TRAINING = """
    import torch, torch.nn.functional as F
    from torch._dynamo.utils import counters
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4)).to("webgpu")
    call = torch.compile(model)
    x = torch.randn(5, 8).to("webgpu")
    loss = call(x).square().mean()
    loss.backward()
    sums = [round(p.grad.abs().sum().item(), 4) for p in model.parameters()]
    graphs, programs = counters["inductor"], counters["aot_autograd"]
    print(graphs["fxgraph_cache_hit"], graphs["fxgraph_cache_miss"], programs["autograd_cache_hit"],
          programs["autograd_cache_miss"], sums)
"""


def run(script: str, before: str = "", **environment: Any) -> str:
    text = textwrap.dedent(before) + textwrap.dedent(script)
    done = subprocess.run(
        [sys.executable, "-c", text], env={**os.environ, **environment}, cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def counted(before: str, directory: Path) -> tuple[list[int], str]:
    numbers, _, sums = run(TRAINING, before, TORCHINDUCTOR_CACHE_DIR=str(directory)).partition("[")
    return [int(n) for n in numbers.split()], sums


OTHER_SOURCES = """
    from torch_webgpu.inductor import device_ops
    device_ops.cache_key = lambda: "of other sources"
"""


def test_graphs_are_found_by_the_next_process_and_not_after_a_change(tmp_path: Path) -> None:
    """Forward and backward come from the caches in the second process; with another key nothing does."""
    first, sums = counted("", tmp_path)
    assert first[0] == 0 and first[1] >= 2, "compiled"
    assert first[2] == 0 and first[3] == 1
    second, again = counted("", tmp_path)
    assert second[2] == 1 and second[1] == 0 and second[3] == 0, second
    third, other = counted(OTHER_SOURCES, tmp_path)
    assert third[0] == 0 and third[1] >= 2 and third[2] == 0, third
    last, _ = counted("", tmp_path)
    assert last[2] == 1 and last[1] == 0
    assert sums == again == other


def test_key_depends_on_sources_extension_and_adapter() -> None:
    script = """
        import dataclasses, pathlib
        from torch_webgpu import _C
        from torch_webgpu.inductor import device_ops
        keys = [device_ops.cache_key()]
        read = pathlib.Path.read_bytes
        pathlib.Path.read_bytes = lambda self: read(self) + b"#" * (self.name == "kernel.py")
        keys.append(device_ops.cache_key())
        pathlib.Path.read_bytes = read
        stat = pathlib.Path.stat
        class Other:
            st_size, st_mtime_ns = 1, 2
        pathlib.Path.stat = lambda self, **k: Other() if self.suffix == ".so" and "_C" in self.name else stat(self, **k)
        keys.append(device_ops.cache_key())
        pathlib.Path.stat = stat
        target = _C.target()
        class Elsewhere:
            __getattr__ = staticmethod(lambda name: getattr(_C, name))
            target = staticmethod(lambda: {**target, "subgroup": 32})
        device_ops._C = Elsewhere()
        keys.append(device_ops.cache_key())
        device_ops._C = _C
        keys.append(device_ops.cache_key())
        print(len(set(keys)), keys[0] == keys[-1])
    """
    assert run(script) == "4 True\n"


def test_kernels_of_a_module_are_compiled_side_by_side() -> None:
    """Each takes half a second longer here. Six kernels, one behind the other, would take three seconds more."""
    script = """
        import threading, time, torch
        from torch_webgpu.inductor import runtime
        def function(x):
            results = []
            for size in (3, 4, 5, 6, 7, 8):
                results.append((x[:, :size] * size).sum(1).sin())
            return [r.cumsum(0) for r in results]
        made, checked = [], []
        begin, finish = runtime.kernel, runtime.Kernel._finish
        def kernel(*args):
            made.append(time.perf_counter())
            return begin(*args)
        def finishes(self, uneven):
            start = time.perf_counter()
            kernel = finish(self, uneven)
            checked.append(time.perf_counter() - start)
            return kernel
        runtime.kernel, runtime.Kernel._finish = kernel, finishes
        x = torch.ones(40, 8, device="webgpu")
        torch.compile(function, options={"max_fusion_size": 1, "combo_kernels": False})(x)
        torch.webgpu.synchronize()
        print(len(made), max(made) - min(made), sum(checked))
    """
    kernels, making, waiting = run(
        script, TORCH_WEBGPU_TEST_COMPILE_MS="500", TORCHINDUCTOR_FORCE_DISABLE_CACHES="1"
    ).split()
    assert int(kernels) >= 4
    assert float(making) < 0.4, "the next kernel is begun before the one before it is compiled"
    assert float(waiting) < 0.5 * int(kernels) * 0.75, "they are waited for together"
