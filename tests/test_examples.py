"""The examples: the demo's data reader, its answers on the device, its one-line errors; kernels of one's own."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.support import on_device
from torch_webgpu.examples import mnist_cnn
from torch_webgpu.examples.mnist import read_digits, read_idx

ROOT = Path(__file__).parents[1]


def run_demo(*arguments: str, name: str = "mnist") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", f"torch_webgpu.examples.{name}", *arguments]
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


def test_kernels_of_ones_own() -> None:
    done = run_demo(name="shader")
    assert done.returncode == 0, done.stderr
    on_device, on_cpu = zip(*re.findall(r"loss (\S+) with the kernels, (\S+) on the CPU", done.stdout), strict=True)
    assert len(on_device) == 5
    assert [float(loss) for loss in on_device] == pytest.approx([float(loss) for loss in on_cpu], rel=1e-4)
    assert float(on_device[-1]) < float(on_device[0])
    assert "swiglu, swiglu_backward" in done.stdout


def test_demo_without_data_says_so_in_one_line(tmp_path: Path) -> None:
    demo = run_demo("--data", str(tmp_path))
    assert demo.returncode == 1
    assert re.fullmatch(r"mnist: no usable digits .*make setup.*\n", demo.stderr)


def test_training_demo_saves_weights_and_a_picture(tmp_path: Path) -> None:
    """The first 6,000 images: the whole epoch, which reaches 97.8 %, takes a minute."""
    demo = run_demo("--images", "6000", "--out", str(tmp_path), name="mnist_cnn")
    assert demo.returncode == 0, demo.stderr
    accuracies = [float(number) for number in re.findall(r"(\d+\.\d+)%", demo.stdout)]
    assert len(accuracies) == 2
    assert min(accuracies) > 85
    assert abs(accuracies[0] - accuracies[1]) <= 0.02
    assert "operations that ran on the CPU: 0" in demo.stdout
    assert "images/s" in demo.stderr
    assert "loss=" in demo.stderr
    assert set(torch.load(tmp_path / "mnist_cnn.pt", weights_only=True)) == set(mnist_cnn.cnn().state_dict())
    assert (tmp_path / "mnist_cnn.png").read_bytes().startswith(b"\x89PNG")


def test_training_follows_the_cpu() -> None:
    """The same seed and order: 50 steps' losses agree to 1e-3, while they fall by more than a thousand times that."""
    images, labels = (part[: 50 * 32] for part in read_digits(ROOT / "data" / "mnist", "train"))

    def curve(device: str) -> torch.Tensor:
        torch.manual_seed(0)
        model = mnist_cnn.cnn().to(device)
        return torch.stack(list(mnist_cnn.train(model, images, labels, 32, device)))

    with on_device() as results:
        results.append(curve("webgpu"))
    actual, expected = results[0].cpu(), curve("cpu")
    assert expected.shape == (50,)
    assert expected[0] - expected[-5:].mean() > 1
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-3)
