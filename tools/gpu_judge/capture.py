"""Gets the launches of a workload from the Null adapter, and the machine code of their texts from the driver."""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.gpu_judge.model import Compiled, Launch

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "gpu_judge"
DAWN = ROOT / "torch_webgpu" / "lib" / "libwebgpu_dawn.so"
DRIVERS = [Path(x) / "vulkan" / "icd.d" for x in ("/usr/share", "/usr/local/share", "/etc")]


def missing() -> str | None:
    """Why nothing can be judged here, or None."""
    if _driver() is None:
        return "Mesa's Vulkan driver for AMD GPUs is not installed (Debian's mesa-vulkan-drivers has it)"
    if not (BUILD / "gpu_compile").exists() or not (BUILD / "libno_commands.so").exists():
        return "build/gpu_judge is missing: `tools/setup tests` builds it where the Vulkan headers are installed"
    return None if DAWN.exists() else f"{DAWN} is missing: run `make setup`"


def _driver() -> Path | None:
    return next((file for folder in DRIVERS for file in sorted(folder.glob("radeon_icd*.json"))), None)


def launches_of(workloads: list[str], variables: dict[str, str] | None = None) -> dict[str, list[Launch]]:
    """What each of the workloads dispatches on a GPU, without what it dispatches to make its inputs."""
    environment = os.environ | {
        "TORCH_WEBGPU_ADAPTER": "null",
        "TORCH_WEBGPU_TARGET": "gpu",
        "TORCH_WEBGPU_RUNTIME": "dawn",
        **(variables or {}),
    }
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-m", "tools.gpu_judge.workloads", *workloads],
            env=environment | {"TORCH_WEBGPU_DUMP": f"{folder}/kernels.wgsl"},
            cwd=ROOT,
            text=True,
            capture_output=True,
        )
    if done.returncode:
        raise RuntimeError(f"the workloads failed:\n{done.stderr[-3000:]}")
    found = json.loads(done.stdout)
    return {
        name: [Launch(x["label"], x["wgsl"], tuple(x["grid"]), _lanes_of(x["wgsl"])) for x in found[name]]
        for name in workloads
    }


def _lanes_of(wgsl: str) -> int:
    size = re.search(r"@workgroup_size\((\w+)\)", wgsl)
    if not size:
        raise ValueError("a kernel without @workgroup_size")
    if size[1].isdigit():
        return int(size[1])
    constant = re.search(rf"const {size[1]}\b[^=]*= (\d+)", wgsl)
    if not constant:
        raise ValueError(f"the workgroup's size, {size[1]}, is not a number")
    return int(constant[1])


def compile_for(chip: str, texts: list[str]) -> list[Compiled]:
    environment = os.environ | {
        "VK_LAYER_PATH": str(BUILD),
        "VK_INSTANCE_LAYERS": "VK_LAYER_no_commands",
        "VK_ICD_FILENAMES": str(_driver()),
        "RADV_FORCE_FAMILY": chip,
        "RADV_DEBUG": "asm,shaderstats,nocache",
        "MESA_SHADER_CACHE_DISABLE": "1",
    }
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{i}.wgsl" for i in range(len(texts))]
        for file, text in zip(files, texts, strict=True):
            file.write_text(text)
        done = subprocess.run(
            [BUILD / "gpu_compile", DAWN, *files],
            env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
    output = done.stdout
    if done.returncode or f"RADV {chip}" not in output:
        raise RuntimeError(f"the driver did not compile for {chip}:\n{output[-3000:]}")
    compiled = []
    start = 0
    for file in files:
        mark = re.compile(rf"^compiled: {re.escape(str(file))} (.*)$", re.MULTILINE).search(output, start)
        if not mark or mark[1]:
            raise RuntimeError(f"a kernel does not compile: {mark[1] if mark else output[-3000:]}")
        compiled.append(_parse(output[start : mark.start()]))
        start = mark.end()
    return compiled


def _parse(output: str) -> Compiled:
    text = output[output.index("disasm:") : output.index("*** SHADER STATS ***")]
    statistics = {name: int(value) for name, value in re.findall(r"^([A-Z][\w .-]+): (\d+)$", output, re.MULTILINE)}
    return Compiled(text, statistics)
