"""Runs Python in a process of its own: whatever is about importing, the environment, forking or a lost device."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[2]
RUNTIMES = ("dawn", "wgpu")
SECONDS = 120  # importing torch takes 1.5 s on an idle machine and no script computes much: what takes longer hangs

# What would choose another device than the script expects.
_OURS = tuple(f"TORCH_WEBGPU_{name}" for name in ("RUNTIME", "ADAPTER", "SYNC", "FALLBACK", "PIN"))


def run(script: str | Path, *, seconds: float = SECONDS, **environment: str) -> subprocess.CompletedProcess[str]:
    """The finished process. One that hangs is killed, and the test fails."""
    base = {name: value for name, value in os.environ.items() if name not in _OURS}
    defaults = {"LP_NUM_THREADS": "0", "TORCH_WEBGPU_FALLBACK": "error", "PYTHONFAULTHANDLER": "1"}
    return subprocess.run(
        [sys.executable, script] if isinstance(script, Path) else [sys.executable, "-c", textwrap.dedent(script)],
        env=base | defaults | environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=seconds,
    )


def output_of(script: str | Path, *, seconds: float = SECONDS, **environment: str) -> list[str]:
    """The lines a script printed; it must end well."""
    done = run(script, seconds=seconds, **environment)
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout.splitlines()
