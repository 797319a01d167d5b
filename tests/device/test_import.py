"""Importing: ``import torch`` is enough, in any order, costs little and opens no GPU library."""

from __future__ import annotations

import statistics

import pytest

from tests.device.process import output_of

# The name in a script's path must not help: the installed entry point has to find the package.
INSTALLED = "import sys; sys.path.pop(0)\n"

# A script that has the device, whatever it imported.
USE = """
x = torch.ones(3, device="webgpu") + 1
print(x.tolist(), x.device, torch.webgpu.is_initialized())
"""

USED = ["[2.0, 2.0, 2.0] webgpu:0 True"]

# The GPU libraries in this process: WebGPU runtimes, the Vulkan loader and its drivers.
MAPPED = """
def mapped():
    files = {line.split()[-1].rpartition("/")[2] for line in open("/proc/self/maps") if "/" in line}
    marks = ("vulkan", "webgpu_dawn", "wgpu_native", "libEGL", "libGL", "libdrm")
    return sorted(file for file in files if any(mark in file for mark in marks))
"""

AUTOLOAD = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "1"}
NO_AUTOLOAD = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}


def test_torch_alone_is_enough() -> None:
    assert output_of(INSTALLED + "import torch" + USE, **AUTOLOAD) == USED


@pytest.mark.parametrize(
    "imports",
    [
        "import torch; import torch_webgpu",
        "import torch_webgpu; import torch",
        "import torch, torch_webgpu, importlib; importlib.reload(torch_webgpu)",
        "import torch; import torch.webgpu; from torch.webgpu import synchronize; synchronize()",
    ],
)
@pytest.mark.parametrize("environment", [AUTOLOAD, NO_AUTOLOAD], ids=["autoload", "no autoload"])
def test_imports_in_any_order(imports: str, environment: dict[str, str]) -> None:
    if environment is NO_AUTOLOAD and "torch_webgpu" not in imports:
        imports = "import torch_webgpu; " + imports
    assert output_of(INSTALLED + imports + USE, **environment) == USED


def test_without_autoload_torch_alone_knows_no_such_device() -> None:
    script = """
    import torch
    print(hasattr(torch, "webgpu"), hasattr(torch.Tensor, "webgpu"))
    try:
        torch.device("webgpu")
    except RuntimeError:
        print("no such device")
    import torch_webgpu
    print(hasattr(torch, "webgpu"), hasattr(torch.Tensor, "webgpu"), torch.device("webgpu"))
    """
    assert output_of(script, **NO_AUTOLOAD) == ["False False", "no such device", "True True webgpu"]


def test_importing_opens_no_gpu_library() -> None:
    script = """
import os, torch
print(mapped(), torch.webgpu.is_initialized(), len(os.listdir("/proc/self/task")))
torch.device("webgpu"); torch.manual_seed(1); torch.webgpu.memory_stats(); torch.webgpu.synchronize()
torch.Generator(device="webgpu"); torch.accelerator.current_accelerator(check_available=False)
print(mapped(), torch.webgpu.is_initialized(), len(os.listdir("/proc/self/task")))
torch.empty(1, device="webgpu")
print(bool(mapped()), torch.webgpu.is_initialized())
"""
    before, idle, after = output_of(MAPPED + script, OMP_NUM_THREADS="1")
    assert before == idle == "[] False 1", "a library or a thread"
    assert after == "True True", "the check sees the libraries once they are open"


def test_importing_warns_of_nothing() -> None:
    script = """
    import torch, warnings
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        import torch_webgpu
    """
    assert output_of(script, **NO_AUTOLOAD) == []


def test_importing_costs_little() -> None:
    """CPU time, which a busy machine stretches less than the clock, of what autoload adds to torch's own 1,000 ms.

    It takes 11 ms; the bound leaves room for slower machines and not for opening a runtime or reading the kernels.
    """
    script = """
    import os, torch
    before = os.times()
    import torch_webgpu
    after = os.times()
    print(after.user - before.user + after.system - before.system)
    """
    seconds = statistics.median(float(output_of(script, **NO_AUTOLOAD)[0]) for _ in range(3))
    assert seconds <= 0.15


def test_autoload_costs_no_more_than_that() -> None:
    """All of `import torch` with the device, against without: the least of three, as noise only adds."""
    script = "import torch, os; print(os.times().user)"
    least = {
        name: min(float(output_of(script, **environment)[0]) for _ in range(3))
        for name, environment in (("with", AUTOLOAD), ("without", NO_AUTOLOAD))
    }
    assert least["with"] - least["without"] <= 0.4, "a third of torch's own import would be felt"


def test_autoload_brings_only_ours() -> None:
    """No package of the ecosystem is imported on the way: wgpu's Python part, for one, is only looked for."""
    script = "import torch, sys; print(*sorted(sys.modules))"
    with_device, without = (set(output_of(script, **each)[0].split()) for each in (AUTOLOAD, NO_AUTOLOAD))
    extra = with_device - without
    assert extra
    assert all(name.partition(".")[0] == "torch_webgpu" or name == "torch.webgpu" for name in extra), extra
