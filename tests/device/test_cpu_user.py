"""Who works on the CPU alone gets the same whether or not the device is installed, and whether or not it was used.

tests/device/cpu_user.py goes through what PyTorch decides by the accelerator: the group of processes, meshes, masks,
pinned memory, checkpoints, data parallelism.
"""

from __future__ import annotations

import functools
import subprocess
import sys
from pathlib import Path

import pytest

from tests.device.cpu_user import STEPS
from tests.device.process import ROOT, SECONDS, output_of

SCRIPT = ROOT / "tests" / "device" / "cpu_user.py"

# A process that uses the device is like one on a machine with CUDA: what is made without a device may be there.
ON_THE_DEVICE_ONCE_USED = {"flex_attention", "sharding"}


@functools.cache
def lines(autoload: str, used: bool) -> dict[str, str]:
    code = f"import sys, runpy; sys.argv[1:] = {['used'] * used}; runpy.run_path({str(SCRIPT)!r}, run_name='__main__')"
    output = output_of(code, seconds=2 * SECONDS, TORCH_DEVICE_BACKEND_AUTOLOAD=autoload)
    assert output[-1] == "done"
    return dict(line.split(": ", 1) for line in output[:-1] if ": " in line)


@pytest.mark.parametrize("name", [step.__name__ for step in STEPS])
@pytest.mark.parametrize("used", [False, True], ids=["installed", "used"])
def test_the_same_as_without_the_device(name: str, used: bool) -> None:
    expected = lines("0", False)[name]
    assert "Error" not in expected or name == "errors", expected
    if used and name in ON_THE_DEVICE_ONCE_USED:
        expected = expected.replace("('cpu', 'cpu')", "('webgpu:0', 'webgpu:0')")
        whole, mesh, default = expected.rpartition("(['cpu'], ")
        expected = f"{whole}(['webgpu:0'], {default}" if mesh else expected
    assert lines("1", used)[name] == expected


def test_none_of_it_opens_the_device() -> None:
    assert lines("1", False)["opened"] == "False"
    assert lines("1", True)["opened"] == "True", "the check sees a device that is open"


def test_torchrun_needs_no_backend(tmp_path: Path) -> None:
    """The usual first lines of a script, which named no backend before there was a device."""
    script = tmp_path / "script.py"
    script.write_text(
        "import torch, torch.distributed as dist\n"
        "dist.init_process_group()\n"
        "x = torch.ones(2)\n"
        "dist.all_reduce(x)\n"
        "print(x.tolist(), dist.get_world_size())\n"
        "dist.destroy_process_group()\n"
    )
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["[2.0, 2.0] 2"] * 2
