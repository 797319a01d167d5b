"""Runs the C++ tests of build/: every case in a process of its own."""

import importlib.util
import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def libraries() -> dict[str, str]:
    wgpu = importlib.util.find_spec("wgpu")  # not imported: that would open the library
    found = {"dawn": str(ROOT / "torch_webgpu" / "lib" / "libwebgpu_dawn.so")}
    if wgpu and wgpu.submodule_search_locations:
        found["wgpu"] = str(Path(wgpu.submodule_search_locations[0]) / "resources" / "libwgpu_native-release.so")
    return found


def _run(binary: str, runtime: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    paths = libraries()
    environment = os.environ | {
        "TORCH_WEBGPU_RUNTIME": runtime,
        "TORCH_WEBGPU_TEST_DAWN": paths["dawn"],
        "TORCH_WEBGPU_TEST_WGPU": paths.get("wgpu", "/the/package/wgpu/is/not/installed"),
        "LP_NUM_THREADS": "0",
    }
    environment.pop("TORCH_WEBGPU_SYNC", None)
    return subprocess.run(
        [ROOT / "build" / binary, *arguments],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300,
    )  # fmt: skip


def cases(binary: str) -> list[str]:
    """The names doctest lists, between two rules; a stand-in that fails where there is no binary to ask."""
    if not (ROOT / "build" / binary).exists():
        return ["missing"]
    lines = _run(binary, "dawn", "--list-test-cases").stdout.splitlines()
    rules = [i for i, line in enumerate(lines) if line.startswith("=====")]
    return lines[rules[0] + 1 : rules[-1]] if len(rules) > 1 else ["missing"]


def check(binary: str, case: str, runtime: str) -> None:
    if case == "missing":
        pytest.fail(f"build/{binary} is missing or lists no tests: run `make build`")
    pattern = case.replace(",", "?")  # a comma would end the name
    result = _run(binary, runtime, f"--test-case={pattern}", "--no-version")
    assert result.returncode == 0, result.stdout[-5000:]
    assert re.search(r"test cases: +1 \| +1 passed", result.stdout), result.stdout
