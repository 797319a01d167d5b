"""What one sees of a compiled program: its kernels with the lines they come from, their names in profiles."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch._inductor.utils import fresh_cache, run_and_get_code
from torch.profiler import ProfilerActivity, profile

from tests.compile.support import compiled, count
from tests.support import DEVICE, fallback_mode

ROOT = Path(__file__).parents[2]


def normalised(x: Tensor, y: Tensor) -> Tensor:
    total = x + y
    return F.gelu(F.layer_norm(total, (32,)))


def operands() -> tuple[Tensor, Tensor]:
    return torch.randn(16, 32, device=DEVICE), torch.randn(16, 32, device=DEVICE)


def kernels_of(code: str) -> dict[str, tuple[str, str]]:
    """The comment above each kernel of a module, and the kernel's text, by its name."""
    pattern = r"((?:^#.*\n)+)(webgpu_\w+) = webgpu_runtime\.\w+\((.*?)''', "
    return {name: (note, text) for note, name, text in re.findall(pattern, code, re.MULTILINE | re.DOTALL)}


def test_comment_above_a_kernel() -> None:
    _, (code, *_) = run_and_get_code(compiled(normalised), *operands())
    ((name, (note, text)),) = kernels_of(code).items()
    assert "gelu" in name
    assert re.search(r"# \S*test_seeing\.py:\d+ in normalised: total = x \+ y\n", note)
    assert re.search(r"# \S*test_seeing\.py:\d+ in normalised: return F\.gelu", note)
    assert "Original ATen: [aten.add, aten.native_layer_norm, aten.gelu]" in note
    assert "Graph fragment" in note
    assert "fn main" in text


def test_comments_of_products_modules_and_gradients() -> None:
    """The lines are the user's, not those of torch.nn; a gradient's are those of what it is the gradient of."""
    torch.manual_seed(0)

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.up, self.norm = nn.Linear(16, 32), nn.LayerNorm(32)

        def forward(self, x: Tensor) -> Tensor:
            hidden = F.silu(self.up(x))
            return self.norm(hidden)

    call = compiled(Model().to(DEVICE))
    x = torch.randn(8, 16, device=DEVICE)
    _, codes = run_and_get_code(lambda: call(x).sum().backward())
    assert len(codes) == 2
    for code in codes:
        notes = "".join(note for note, _ in kernels_of(code).values())
        assert kernels_of(code), code
        assert "in forward: hidden = F.silu(self.up(x))" in notes
        assert "in forward: return self.norm(hidden)" in notes
        assert "nn/modules" not in notes


def test_log_of_the_output_code() -> None:
    script = (
        "import torch\nfrom tests.compile.test_seeing import normalised, operands\n"
        "torch.compile(normalised)(*operands())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env={**os.environ, "TORCH_LOGS": "output_code"}, capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    log = re.sub(r"^V\d+ .*?\[__output_code\] ", "", done.stderr, flags=re.MULTILINE)
    for text in ("fn main(@builtin(workgroup_id)", "load4_in_ptr0", "in normalised: total = x + y"):
        assert text in log, log


def test_reason_of_what_runs_eagerly(caplog: pytest.LogCaptureFixture) -> None:
    # A graph of the cache is not printed again.
    with fresh_cache(), fallback_mode("quiet"), caplog.at_level(logging.INFO, logger="torch_webgpu.inductor"):
        compiled(lambda x: torch.view_as_real(x * 2))(torch.ones(4, dtype=torch.complex64, device=DEVICE))
    assert any("runs eagerly" in record.getMessage() for record in caplog.records)


def test_profile_names_fused_kernels() -> None:
    call = compiled(normalised)
    args = operands()
    call(*args)
    with torch.webgpu.profile(show=False) as shown:
        call(*args)
    (row,) = shown.kernels
    assert row.kernel == "fused_add_gelu_native_layer_norm"


def test_torch_profiler_names_fused_kernels() -> None:
    call = compiled(normalised)
    args = operands()
    call(*args)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as shown:
        call(*args)
        torch.webgpu.synchronize()
    names = [event.name for event in shown.events()]
    assert any("fused_add_gelu_native_layer_norm" in name for name in names), names


def test_example() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "torch_webgpu.examples.compile", "--rounds", "2"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if "->" in line and "fn " not in line]
    assert len(rows) >= 5
    for row in rows:
        before, after = map(int, re.findall(r"(\d+) -> (\d+)", row)[0])
        assert after <= before
        assert float(re.findall(r"\d+\.\d+e[-+]\d+|\d+e[-+]\d+", row)[-1]) < 1e-2
        assert re.search(r"\d+\.\d+ .*\d+\.\d+ .*\d+\.\d+x", row), "times of both, and their ratio"
    kernel = done.stdout.partition("The one kernel")[2]
    assert "fn main(" in kernel and "store4_out_ptr0" in kernel


def test_document_is_true() -> None:
    """The first program of docs/compile.md takes one dispatch, and its kernel is what is shown; the others run."""
    document = (ROOT / "docs" / "compile.md").read_text()
    program, *others = re.findall(r"```python\n(.*?)```", document, re.DOTALL)
    names: dict[str, object] = {"torch": torch}
    for other in others:
        exec(other, dict(names))
    exec(program.replace("@torch.compile\n", ""), names)
    call = compiled(names["f"])  # type: ignore[arg-type]
    args = [names[name] for name in "xyb"]
    _, (code, *_) = run_and_get_code(call, *args)
    shown = re.findall(r"```wgsl\n(.*?)```", document, re.DOTALL)[0]
    text = re.sub(r"\s+", " ", code)
    for line in shown.splitlines():
        if line.strip(" .}"):
            assert re.sub(r"\s+", " ", line.strip()) in text, line
    assert count(call, *args) == 1
