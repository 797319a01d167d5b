"""What is installed: the entry point, the pins, the embedded kernels."""

import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_importing_torch_loads_the_device() -> None:
    entries = importlib.metadata.entry_points(group="torch.backends", name="torch_webgpu")
    assert [entry.value for entry in entries] == ["torch_webgpu:_autoload"]


def test_every_requirement_is_pinned_and_torch_comes_alone() -> None:
    files = ("requirements.txt", "requirements-ecosystem.txt")
    lines = [line for name in files for line in (ROOT / name).read_text().splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[\w-]+==[\d.]+", line) for line in lines)
    assert not any(line.startswith("torch==") for line in lines)
    assert importlib.metadata.version("torch").partition("+")[0] == "2.13.0"


def test_kernels_are_embedded_whole(tmp_path: Path) -> None:
    text = "".join(f"const c{i} = {i}u; // é\n" for i in range(1000))
    (tmp_path / "types").mkdir()
    (tmp_path / "types" / "long.wgsl").write_text(text, "utf-8")
    (tmp_path / "empty.wgsl").write_text("")
    output = tmp_path / "out.cpp"
    subprocess.run([sys.executable, ROOT / "tools" / "embed_wgsl.py", tmp_path, output], check=True)
    source = output.read_text("utf-8")
    assert '{"long", ' in source
    assert '{"empty", ' in source
    assert "".join(re.findall(r'R"wgsl\((.*?)\)wgsl"', source, re.DOTALL)) == text
