"""Tensors that one binding cannot hold: generated kernels bind them in pages, and what has too many is eager."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.device.process import output_of
from tests.ops.test_small_bindings import LIMIT

# A file of tests, the bytes that a binding holds, and tests whose tensors are larger than that.
CHOSEN = {
    "pointwise": (256, "test_arithmetic or test_casts or test_in_place or test_bit_by_bit"),
    "reduce": (4096, "test_rows or test_dtypes"),
    "indexing": (2048, ""),
    "scans": (2048, "test_dtypes or test_what_is_fused or test_gradients"),
    "training": (4096, "test_embedding or test_dropout_mask or mlp"),
}


@pytest.mark.parametrize("name", CHOSEN)
def test_small_bindings(name: str) -> None:
    file = Path(__file__).with_name(f"test_{name}.py")
    limit, chosen = CHOSEN[name]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", file, "-n", "0", "-q", "-x", "-p", "no:cacheprovider", "-k", chosen],
        env=os.environ | {LIMIT: str(limit), "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:]


HEAD = """
    import logging
    import torch
    import torch.nn.functional as F

    def dispatches(call, *args):
        call(*args)
        call(*args)
        before = torch.webgpu.memory_stats()["dispatches"]
        call(*args)
        return torch.webgpu.memory_stats()["dispatches"] - before

    def check(function, *args, **options):
        call = torch.compile(function, backend="webgpu", **options)
        moved = [x.to("webgpu") for x in args]
        for _ in range(2):
            torch.testing.assert_close(call(*moved).cpu(), function(*args), rtol=1e-4, atol=1e-4)
        return dispatches(call, *moved)
"""


def run(script: str, limit: int = 4096) -> list[str]:
    return output_of(HEAD + script, **{LIMIT: str(limit), "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"})


def test_pages_are_one_kernel() -> None:
    script = """
    x, y = torch.randn(40, 50), torch.randn(50)
    print(check(lambda x, y: F.gelu(x * y + 1), x, y))
    print(check(lambda x: torch.softmax(x, -1) + x, x))
    print(check(lambda x: (x * 2).half().t().contiguous(), torch.randn(90, 50)))
    print(check(lambda x: x[3:, 1::2].abs(), x))
    print(check(lambda x: x.sum(), x) <= 2)
    """
    assert run(script) == ["1", "1", "1", "1", "True"]


def test_what_has_too_many_pages_is_eager_and_says_so() -> None:
    script = """
    import sys
    logging.basicConfig(stream=sys.stdout, format="%(message)s")
    logging.getLogger("torch_webgpu.inductor").setLevel("INFO")
    x, y = torch.randn(160, 64), torch.randn(160, 64)  # ten pages each
    check(lambda x, y: (x + y).relu() * x, x, y)
    print("right")
    """
    lines = run(script)
    assert lines[-1] == "right"
    assert any("aten.add.Tensor runs eagerly: its tensors take" in line and "bindings" in line for line in lines)


def test_a_product_that_no_binding_holds_is_eager() -> None:
    """What follows it is a kernel of its own."""
    script = """
    a, b = torch.randn(64, 24), torch.randn(24, 48)
    eager = dispatches(torch.mm, a.to("webgpu"), b.to("webgpu"))
    print(check(lambda a, b: F.gelu(a @ b), a, b) - eager)
    x, w = torch.randn(1, 8, 20, 20), torch.randn(8, 8, 3, 3)
    eager = dispatches(F.conv2d, x.to("webgpu"), w.to("webgpu"))
    print(check(lambda x, w: F.conv2d(x, w).relu(), x, w) - eager)
    """
    assert run(script) == ["1", "1"]


def test_sizes_that_grow_beyond_a_binding() -> None:
    script = """
    call = torch.compile(lambda x: (x * 2).cos().sum(1), backend="webgpu", dynamic=True)
    for rows in (4, 9, 31, 33, 70, 150):
        x = torch.randn(rows, 32)
        torch.testing.assert_close(call(x.to("webgpu")).cpu(), (x * 2).cos().sum(1), rtol=1e-4, atol=1e-4)
    print("right")
    """
    assert run(script) == ["right"]


def test_random_numbers_beyond_a_binding() -> None:
    """They are never those of an eager op: a backward that computes them again would get others."""
    script = """
    x = torch.ones(50, 50, device="webgpu", requires_grad=True)
    call = torch.compile(lambda x: F.dropout(x * 2, 0.5), backend="webgpu")
    out = call(x)
    out.sum().backward()
    print(torch.equal((out != 0).cpu(), (x.grad != 0).cpu()), 0.4 < (out != 0).float().mean().item() < 0.6)
    """
    assert run(script) == ["True True"]
