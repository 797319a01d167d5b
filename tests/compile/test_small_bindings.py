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
    # Where pages are too many, sums of halves are the eager op's, which rounds with each term.
    "indexing": (2048, "not rounded_once"),
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


def test_products_with_pages_beside_them() -> None:
    """Operands of which a binding holds a part, and what the fused ops read and write in pages."""
    script = """
    r = torch.randn
    relu = torch.relu
    a, b, x, w = r(30, 8), r(8, 30), r(1, 4, 8, 8), r(8, 4, 3, 3)
    print(check(lambda a, b, c: relu(a @ b) + c[:, :30], a, b, r(30, 64)))
    print(check(lambda a, b: (a @ b * 100).to(torch.int64), a, b))
    print(check(lambda x, w, c: relu(F.conv2d(x, w, padding=1)) + c[:1, :, :8, :8], x, w, r(3, 8, 10, 10)))
    check(lambda a, b: relu(a.t()[:8] @ b), r(64, 64), r(64, 8))
    check(lambda a, b: relu(a[::2] @ b), r(60, 20), r(20, 8))
    check(lambda x, w: relu(F.conv2d(x[:1, :, :6, :6], w, padding=1)), r(4, 4, 16, 16), w)
    check(lambda a, b, *more: relu(a @ b) + sum(x[:30, :30] for x in more), a, b, *(r(128, 64) for _ in range(4)))
    check(lambda a, b: relu(a @ b.float()), r(4, 80), r(80, 80).mul(9).to(torch.int8))
    print("right")
    """
    assert run(script) == ["1", "1", "1", "right"]


def test_attention_of_several_bindings() -> None:
    script = """
    from torch.nn.attention.flex_attention import flex_attention

    r, attend = torch.randn, F.scaled_dot_product_attention
    small = [r(1, 2, 20, 16) for _ in range(3)]
    print(check(lambda q, k, v, gate: attend(q, k, v) * gate[:1, :, :20], *small, r(3, 2, 30, 16)))
    large = [r(2, 2, 40, 16) for _ in range(3)]
    check(lambda q, k, v: attend(q, k, v) * 2, *large)
    check(lambda q, k, v: attend(q, k, v, is_causal=True).transpose(1, 2).reshape(2, 40, 32) * 2, *large)
    check(lambda q, k, v: flex_attention(q, k, v, lambda score, b, h, m, n: score + m - n) * 2, *large)
    print("right")
    """
    assert run(script) == ["1", "right"]


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
