"""Tests that run once more, in a process of their own: on another adapter or runtime, or with other kernels."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def rerun(*arguments: str, least: int = 1, **variables: str) -> None:
    """Runs pytest with these arguments and environment variables; at least so many tests must pass, and none fail."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")} | variables
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", *arguments],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed and int(passed[1]) >= least, done.stdout[-5000:]
