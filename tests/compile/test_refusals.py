"""What cannot be compiled: the eager op with a reason in the log, or an error that shows the place."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch._inductor.config

from tests.compile.support import check, compiled
from tests.support import DEVICE, assert_same, fallback_mode

SHOW_REASONS = """
import torch
torch.compile(lambda x: torch.view_as_complex(x) + 1, backend="webgpu")(torch.ones(3, 2, device="webgpu"))
"""


@pytest.fixture(autouse=True)
def without_caches() -> Iterator[None]:
    """A graph that was compiled with a part of the code generator exchanged is nothing to keep."""
    with torch._inductor.config.patch(force_disable_caches=True):
        yield


def test_an_op_without_a_formula_is_eager(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    from torch_webgpu.inductor.overrides import WebGPUOverrides

    def refuse(*args: Any) -> Any:
        raise NotImplementedError("no digamma today")

    monkeypatch.setattr(WebGPUOverrides, "digamma", staticmethod(refuse))
    monkeypatch.setattr(WebGPUOverrides, "erfinv", staticmethod(refuse))
    x = torch.rand(40) + 0.5
    with caplog.at_level("INFO", logger="torch_webgpu.inductor"):
        # Two kernels of ours around the eager ones; what follows is fused again.
        check(lambda x: ((x * 2).digamma() + 1, (x / 3).erfinv().sin()), x, rtol=1e-4, atol=1e-5)
    assert "aten.digamma.default runs eagerly: no digamma today" in caplog.text
    assert "aten.erfinv.default runs eagerly" in caplog.text
    monkeypatch.undo()
    caplog.clear()
    with caplog.at_level("INFO", logger="torch_webgpu.inductor"):
        check(lambda x: (x * 2).digamma() + 1, x, launches=1, rtol=1e-4, atol=1e-5)
    assert "eagerly" not in caplog.text, "a refusal is for one graph"


def test_a_reduction_that_is_refused_is_eager(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch_webgpu.inductor import reductions

    monkeypatch.delitem(reductions._FOLDS, "prod")
    check(lambda x: (x + 1).prod(1) * 2, torch.rand(4, 30), rtol=1e-4, atol=1e-5)


def test_what_no_eager_op_can_replace_is_an_error() -> None:
    from torch_webgpu.inductor.eager import Unprintable, until_printable

    def compile_graph() -> None:
        raise Unprintable([torch.ops.aten.sin.default], "no loads")

    with pytest.raises(NotImplementedError, match=r"aten\.sin\.default: no loads"):
        until_printable(compile_graph)


def test_dtypes_that_kernels_do_not_hold() -> None:
    x = torch.randn(6, 2)
    with fallback_mode("quiet"):
        actual = compiled(lambda x: torch.view_as_complex(x * 2) + 1j)(x.to(DEVICE))
    assert_same(actual, torch.view_as_complex(x * 2) + 1j)


def test_reasons_are_in_torch_logs() -> None:
    environment = os.environ | {"TORCH_LOGS": "+torch_webgpu.inductor", "TORCH_WEBGPU_FALLBACK": "quiet"}
    environment["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"
    result = subprocess.run([sys.executable, "-c", SHOW_REASONS], env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "runs eagerly: torch.complex64 is no dtype of kernels" in result.stderr


def test_an_error_of_the_shader_shows_its_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch_webgpu.inductor.overrides import WebGPUOverrides
    from torch_webgpu.inductor.values import emit

    monkeypatch.setattr(WebGPUOverrides, "sin", staticmethod(lambda x: emit("no_such_function(1.0)", torch.float32)))
    with pytest.raises(Exception, match="no_such_function") as raised:
        compiled(lambda x: (x + 1).sin() * 2)(torch.ones(300, device=DEVICE))
    lines = str(raised.value).split("\n")
    marked = [n for n, line in enumerate(lines) if "> " in line and "no_such_function(1.0)" in line]
    assert marked, raised.value
    assert "let tmp" in lines[marked[0] - 1] and "tmp" in lines[marked[0] + 1], "the lines around it"


def test_indices_out_of_range_do_not_leave_the_tensor() -> None:
    """docs/compile.md: reads give an element of the tensor, writes change one of it; eager code raises."""
    table = torch.arange(12.0).view(4, 3).to(DEVICE)
    rows = torch.tensor([0, 3, 4, 99, -1, -4, -5, -99]).to(DEVICE)
    got = compiled(lambda t, i: t[i])(table, rows).cpu()
    assert_same(got[[0, 1, 4, 5]].to(DEVICE), table.cpu()[[0, 3, -1, -4]])
    assert all(any(torch.equal(row, own) for own in table.cpu()) for row in got)
    with pytest.raises(IndexError):
        table[rows].cpu()


def test_float64_inside_of_a_graph() -> None:
    """Tolerances and scalars of PyTorch's own functions compute in float32; results in float64 come from the CPU."""
    x = torch.randn(5, 3)
    with fallback_mode("quiet"):
        assert_same(compiled(torch.pinverse)(x.to(DEVICE)), torch.pinverse(x), rtol=1e-4, atol=1e-5, strides=False)
    moved = x.to(DEVICE).requires_grad_()
    x.requires_grad_()
    compiled(lambda x: x.renorm(2, 0, 0.5).square().sum())(moved).backward()
    x.renorm(2, 0, 0.5).square().sum().backward()
    assert_same(moved.grad, x.grad, rtol=1e-4, atol=1e-5)
    with fallback_mode("quiet"):
        actual = compiled(lambda x: x.double() * 2)(moved.detach())
    assert_same(actual, x.detach().double() * 2)


def test_sorts_say_why_they_are_eager(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="torch_webgpu.inductor"):
        check(lambda x: (x * 2).sort(1).values + 1, torch.randn(4, 2000))
    assert "a sort runs eagerly: rows of 2000 elements are long" in caplog.text
