"""The demo: its data reader, its answers on the device, its one-line errors."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from torch_webgpu.examples.mnist import read_idx

ROOT = Path(__file__).parents[1]


def run_demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "torch_webgpu.examples.mnist", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def test_read_idx(tmp_path: Path) -> None:
    file = tmp_path / "digits"
    file.write_bytes(bytes([0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, *range(6)]))
    assert torch.equal(read_idx(file), torch.arange(6, dtype=torch.uint8).view(2, 3))
    file.write_bytes(bytes([0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, *range(5)]))
    with pytest.raises(ValueError, match="cut short"):
        read_idx(file)
    file.write_bytes(b"not digits")
    with pytest.raises(ValueError, match="not an IDX file"):
        read_idx(file)


def test_demo_agrees_with_the_cpu() -> None:
    demo = run_demo()
    assert demo.returncode == 0, demo.stderr
    accuracies = [float(number) for number in re.findall(r"(\d+\.\d+)%", demo.stdout)]
    assert len(accuracies) == 2
    assert min(accuracies) > 98
    agreed = re.search(r"agree on ([\d,]+) of 10,000", demo.stdout)
    assert agreed is not None
    assert int(agreed[1].replace(",", "")) >= 9990


def test_demo_without_data_says_so_in_one_line(tmp_path: Path) -> None:
    demo = run_demo("--data", str(tmp_path))
    assert demo.returncode == 1
    assert re.fullmatch(r"mnist: no usable digits .*make setup.*\n", demo.stderr)
