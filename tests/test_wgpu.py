"""Each op once on wgpu-native: the tests marked `once`, in a process of their own."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_each_op_once_on_wgpu_native() -> None:
    environment = os.environ | {"TORCH_WEBGPU_RUNTIME": "wgpu"}
    for name in [name for name in environment if name.startswith("PYTEST_")]:
        del environment[name]
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-m", "once", "-n", "0", "-p", "no:cacheprovider", "tests/ops"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stdout[-5000:]
    passed = re.search(r"(\d+) passed", result.stdout)
    assert passed and int(passed[1]) > 40, result.stdout[-5000:]
