"""The benchmark runner: its table, its file, its verdicts; what is measured is not judged here."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from benchmarks.peers.programs import Ours
from benchmarks.peers.work import WORK, Work
from benchmarks.row import Bar, Result, Row, Verdict
from benchmarks.throughput import measure
from benchmarks.worker import ROWS
from benchmarks.workloads import WORKLOADS, Workload
from tests.support import fallback_mode, on_device

ROOT = Path(__file__).parents[1]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)


def test_a_run_prints_a_table_and_writes_a_file(tmp_path: Path) -> None:
    file = tmp_path / "new" / "bench.json"
    done = run("--filter", "C++ add", "--filter", "NEW BUFFERS, DAWN", "--rounds", "1", "--json", str(file))
    assert done.returncode == 0, done.stderr
    for text in (
        "C++ add of 1k",
        "steady loop, new buffers, dawn",
        "µs",
        "≤ 1",
        "verdict",
        torch.webgpu.get_device_name(),
    ):
        assert text in done.stdout, text
    written = json.loads(file.read_text())
    assert written["torch"] == torch.__version__
    assert written["rounds"] == 1
    add, buffers = written["rows"]
    assert add["name"].startswith("C++ add")
    assert 0 < add["value"] < 1000
    assert add["bar"] == {"limit": 1.0, "at_least": False}
    assert add["verdict"] in ("PASS", "FAIL")
    assert (buffers["value"], buffers["verdict"]) == (0, "PASS")


def test_options_that_make_no_sense() -> None:
    nothing = run("--filter", "no such row")
    assert nothing.returncode == 2
    assert "add 4M" in nothing.stderr, "the rows there are"
    assert run("--rounds", "0").returncode == 2


def test_names_are_unique() -> None:
    names = [row.name for row in ROWS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("bar", "result", "verdict"),
    [
        (Bar(4), Result(4.0), Verdict.PASS),
        (Bar(4), Result(4.1), Verdict.FAIL),
        (Bar(95, at_least=True), Result(95.0), Verdict.PASS),
        (Bar(95, at_least=True), Result(94.9), Verdict.FAIL),
        (Bar(0), Result(0), Verdict.PASS),
        (None, Result(4.0), Verdict.REPORTED),
        (Bar(4), Result(1.0, fallbacks=["aten::gelu"]), Verdict.FALLBACK),
        (Bar(4), Result(missing="convolution"), Verdict.MISSING),
        (Bar(4), Result(error="wrong"), Verdict.ERROR),
        (Bar(4), Result(), Verdict.ERROR),
    ],
)
def test_verdicts(bar: Bar | None, result: Result, verdict: Verdict) -> None:
    row = Row("name", "section", "x", bar, lambda rounds: result)
    assert row.verdict(result) is verdict
    assert verdict.is_bad == (verdict in (Verdict.FAIL, Verdict.ERROR))


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_every_workload_runs_on_the_cpu(workload: Workload) -> None:
    with torch.no_grad():
        result = workload.run(*workload.inputs())
    assert isinstance(result, torch.Tensor)
    assert result.numel()


def tiny(run: object) -> Workload:
    return Workload("tiny", None, lambda: (torch.eye(3),), run)  # type: ignore[arg-type]


def test_a_workload_is_timed_on_both_devices() -> None:
    result = measure(2, workload=tiny(lambda x: x + 1))
    assert result.fallbacks == []
    assert result.cpu_ms is not None
    assert result.device_ms is not None
    assert result.first_call_ms is not None
    assert result.value == result.device_ms / result.cpu_ms > 0


def test_what_is_not_native_is_told_apart() -> None:
    with fallback_mode("quiet"):
        assert measure(1, workload=tiny(torch.linalg.eigvalsh)).fallbacks == ["aten::_linalg_eigh.eigenvalues"]
    assert "eigh" in measure(1, workload=tiny(torch.linalg.eigvalsh)).missing


def test_a_wrong_answer_is_not_timed() -> None:
    with pytest.raises(AssertionError, match="not close"):
        measure(1, workload=tiny(lambda x: x + 1 if x.is_cpu else x + 2))


@pytest.mark.parametrize("work", WORK, ids=[work.name for work in WORK])
def test_work_of_the_peers(work: Work) -> None:
    """A chain runs on the device, and its numbers neither grow nor vanish."""
    small = dataclasses.replace(work, x=(1, 8, 64)) if work.kind == "attention" else work
    x, weights = small.arrays()
    ours = Ours()
    with on_device(waits=None) as results:
        results.append(ours.chain(small, x, weights, 5)())
    found = ours.array(results[0])
    assert found.shape == x.shape
    result = torch.from_numpy(x)
    for _ in range(5):
        result = getattr(ours, work.kind)(result, *map(torch.from_numpy, weights))
    torch.testing.assert_close(torch.from_numpy(found), result, rtol=1e-3, atol=1e-4)
    assert 1e-7 < result.abs().max() < 100
