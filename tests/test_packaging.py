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


def test_the_hash_of_kernels_is_of_all_files(tmp_path: Path) -> None:
    """What was measured counts no more when a kernel or the code that prints it has changed."""
    (tmp_path / "wgsl").mkdir()
    (tmp_path / "code").mkdir()
    kernel, code, output = tmp_path / "wgsl" / "a.wgsl", tmp_path / "code" / "a.cpp", tmp_path / "out.cpp"
    kernel.write_text("fn a() {}")
    code.write_text("int a;")
    hashes = set()
    for changed in (kernel, code, None):
        for _ in range(2):
            command = [sys.executable, ROOT / "tools" / "embed_wgsl.py", tmp_path / "wgsl", output, tmp_path / "code"]
            subprocess.run(command, check=True)
            hashes |= set(re.findall(r'kernels_hash\(\) { return "(\w+)"', output.read_text("utf-8")))
        if changed:
            changed.write_text(changed.read_text() + "\n")
    assert len(hashes) == 3
