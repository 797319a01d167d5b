"""The tests marked `once` where kernels are printed differently: on other adapters, as far as one machine has them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = ("columns", "indexing", "kept_rows", "optimizers", "pointwise", "reduce", "scans", "training")
ADAPTERS = {
    "workgroups of 64 without subgroups": {"TORCH_WEBGPU_TARGET": "gpu"},
    "subgroups of four": {"LP_NATIVE_VECTOR_WIDTH": "128"},
    "wgpu-native": {"TORCH_WEBGPU_RUNTIME": "wgpu"},
}


@pytest.mark.parametrize("name", ADAPTERS)
def test_once(name: str) -> None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")} | ADAPTERS[name]
    files = [f"tests/compile/test_{file}.py" for file in FILES]
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-m", "once", "-n", "0", "-p", "no:cacheprovider", *files],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
    )
    assert result.returncode == 0, result.stdout[-5000:]
    passed = re.search(r"(\d+) passed", result.stdout)
    assert passed and int(passed[1]) > 15, result.stdout[-5000:]
