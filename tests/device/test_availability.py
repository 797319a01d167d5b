"""Choosing a runtime and an adapter, and the one error when there is none."""

from __future__ import annotations

import ctypes.util
import subprocess

import pytest
import torch

from tests.device.process import ROOT, RUNTIMES, output_of, run

NO_DRIVER = {"VK_ICD_FILENAMES": "/nowhere/icd.json", "VK_DRIVER_FILES": "/nowhere/icd.json"}

# Says what is there, and what the first tensor brings.
PROBE = """
    import sys, torch
    available, count = torch.webgpu.is_available(), torch.webgpu.device_count()
    print(available, count, torch.accelerator.is_available(), torch.accelerator.device_count())
    try:
        x = torch.ones(3, device="webgpu") + 1
        properties = torch.webgpu.get_device_properties()
        print(x.tolist(), properties.runtime, properties.backend, properties.name)
    except RuntimeError as error:
        print(error)
"""


def probe(**environment: str) -> tuple[bool, str]:
    """Whether a device is available, and what was said about it."""
    lines = output_of(PROBE, **environment)
    available = lines[0].startswith("True")
    count = 1 if available else 0
    assert lines[0] == f"{available} {count} {available} {count}"
    return available, "\n".join(lines[1:])


def refusal(**environment: str) -> str:
    available, said = probe(**environment)
    assert not available
    assert said.startswith("webgpu: no WebGPU adapter was found. Tried:")
    assert said.count("Tried:") == 1
    assert "mesa-vulkan-drivers" in said
    assert "pip install wgpu" in said
    return said


@pytest.mark.parametrize("runtime", ["", *RUNTIMES])
def test_without_a_driver_the_error_names_every_library(runtime: str) -> None:
    said = refusal(**NO_DRIVER, TORCH_WEBGPU_RUNTIME=runtime)
    assert ("libwebgpu_dawn.so: no adapter answered" in said) == (runtime != "wgpu")
    assert ("libwgpu_native-release.so: no adapter answered" in said) == (runtime != "dawn")


def test_without_a_driver_every_way_in_gives_the_same_error() -> None:
    script = """
    import io, torch
    saved = io.BytesIO(); torch.save(torch.ones(2), saved)
    ways = [
        lambda: torch.ones(3, device="webgpu"),
        lambda: torch.empty(0, device="webgpu"),
        lambda: torch.ones(3).to("webgpu"),
        lambda: torch.ones(3).webgpu(),
        lambda: torch.nn.Linear(2, 2).to("webgpu"),
        lambda: torch.Event(device="webgpu").record(),
        lambda: torch.webgpu.init(),
        lambda: torch.webgpu.get_device_name(),
    ]
    reason = torch.webgpu.unavailable_reason()
    assert reason
    for number, way in enumerate(ways):
        try:
            way()
        except RuntimeError as error:
            assert str(error) == "webgpu: " + reason, (number, error)
        else:
            raise AssertionError(number)
    saved.seek(0)
    try:
        torch.load(saved, map_location="webgpu")
    except RuntimeError as error:
        assert "torch.webgpu.is_available() is False" in str(error)
    else:
        raise AssertionError("loaded")
    """
    output_of(script, **NO_DRIVER)


def test_without_a_driver_the_rest_of_torch_works() -> None:
    script = """
    import torch
    torch.manual_seed(3)
    model = torch.nn.Linear(4, 2)
    model(torch.ones(1, 4)).sum().backward()
    torch.webgpu.synchronize(); torch.webgpu.empty_cache()
    assert torch.webgpu.memory_allocated() == torch.webgpu.memory_reserved() == 0
    assert not torch.webgpu.is_initialized() and not torch.webgpu._is_in_bad_fork()
    generator = torch.Generator(device="webgpu").manual_seed(5)
    print(torch.device("webgpu"), generator.initial_seed(), model.weight.grad.shape)
    """
    assert output_of(script, **NO_DRIVER) == ["webgpu 5 torch.Size([2, 4])"]


def test_an_uncaught_error_ends_the_process_with_it() -> None:
    done = run("import torch; torch.ones(1, device='webgpu')", **NO_DRIVER)
    assert done.returncode == 1
    assert done.stderr.count("no WebGPU adapter was found") == 1


def test_an_unknown_runtime_is_named() -> None:
    said = refusal(TORCH_WEBGPU_RUNTIME="vulkan")
    assert "'vulkan'" in said
    assert "dawn, wgpu or a path" in said


def test_a_path_that_is_no_library_is_named() -> None:
    assert "/nowhere/libwebgpu.so: cannot open" in refusal(TORCH_WEBGPU_RUNTIME="/nowhere/libwebgpu.so")
    assert "invalid ELF header" in refusal(TORCH_WEBGPU_RUNTIME=str(ROOT / "LICENSE"))


def test_a_library_without_webgpu_is_named() -> None:
    name = ctypes.util.find_library("m")
    assert name is not None
    maps = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=True, timeout=10).stdout
    path = next(line.rpartition("=> ")[2] for line in maps.splitlines() if line.strip().startswith(name + " "))
    assert "has no function wgpu" in refusal(TORCH_WEBGPU_RUNTIME=path)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_both_runtimes_can_be_chosen(runtime: str) -> None:
    available, said = probe(TORCH_WEBGPU_RUNTIME=runtime)
    assert available
    assert said.startswith(f"[2.0, 2.0, 2.0] {'wgpu-native' if runtime == 'wgpu' else 'dawn'} vulkan")


def test_dawn_is_the_first_choice() -> None:
    assert probe()[1].startswith("[2.0, 2.0, 2.0] dawn")


def test_a_runtime_can_be_chosen_by_path() -> None:
    path = torch.webgpu.get_device_properties().library
    script = "import torch; print(torch.webgpu.get_device_properties().library)"
    assert output_of(script, TORCH_WEBGPU_RUNTIME=path) == [path]


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_an_adapter_is_chosen_by_part_of_its_name(runtime: str) -> None:
    name = output_of("import torch; print(torch.webgpu.get_device_name())", TORCH_WEBGPU_RUNTIME=runtime)[0]
    part = name.split()[0].upper()  # in any case
    available, said = probe(TORCH_WEBGPU_RUNTIME=runtime, TORCH_WEBGPU_ADAPTER=part)
    assert available
    assert said.endswith(name)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_an_adapter_that_is_not_there_is_named_beside_those_that_are(runtime: str) -> None:
    name = output_of("import torch; print(torch.webgpu.get_device_name())", TORCH_WEBGPU_RUNTIME=runtime)[0]
    said = refusal(TORCH_WEBGPU_RUNTIME=runtime, TORCH_WEBGPU_ADAPTER="no such card")
    assert f"no adapter matches 'no such card' among: {name}" in said


def test_dawn_computes_nothing_only_when_asked_to() -> None:
    """Its Null backend is there where no driver is, and must not be taken for one; "null" asks for it."""
    refusal(**NO_DRIVER, TORCH_WEBGPU_RUNTIME="dawn")
    available, said = probe(**NO_DRIVER, TORCH_WEBGPU_RUNTIME="dawn", TORCH_WEBGPU_ADAPTER="null")
    assert available
    assert " dawn null " in said
    assert "no adapter answered" in refusal(TORCH_WEBGPU_RUNTIME="wgpu", TORCH_WEBGPU_ADAPTER="null")


def test_asking_opens_no_device_and_has_no_reason_to_give() -> None:
    script = """
    import torch
    print(torch.webgpu.is_available(), torch.webgpu.is_initialized(), repr(torch.webgpu.unavailable_reason()))
    torch.webgpu.init()
    print(torch.webgpu.is_initialized())
    """
    assert output_of(script) == ["True False ''", "True"]
