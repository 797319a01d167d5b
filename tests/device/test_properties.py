"""What the device says of itself, and the names by which PyTorch reaches it."""

from __future__ import annotations

import dataclasses
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.device.process import RUNTIMES, output_of

MiB = 1 << 20

# The least every WebGPU adapter has, and what one gets who does not ask for more.
DEFAULT_LIMITS = {
    "maxBufferSize": 256 * MiB,
    "maxStorageBufferBindingSize": 128 * MiB,
    "maxStorageBuffersPerShaderStage": 8,
    "maxUniformBufferBindingSize": 65536,
    "maxComputeWorkgroupStorageSize": 16384,
    "maxComputeInvocationsPerWorkgroup": 256,
    "maxComputeWorkgroupSizeX": 256,
    "maxComputeWorkgroupsPerDimension": 65535,
}


# Properties


def test_every_field_says_something() -> None:
    properties = torch.webgpu.get_device_properties()
    for field in ("name", "vendor", "driver", "backend", "type", "runtime", "library"):
        assert isinstance(getattr(properties, field), str), field
        assert getattr(properties, field), field
    assert isinstance(properties.architecture, str)
    assert properties.runtime in ("dawn", "wgpu-native")
    assert properties.type in ("discrete", "integrated", "cpu", "unknown")
    assert Path(properties.library).is_file()
    assert Path(properties.library).name in Path("/proc/self/maps").read_text()


def test_limits_are_the_adapters_own() -> None:
    limits = torch.webgpu.get_device_properties().limits
    assert all(isinstance(value, int) for value in limits.values())
    for name, least in DEFAULT_LIMITS.items():
        assert limits[name] >= least, name
    for name in ("minUniformBufferOffsetAlignment", "minStorageBufferOffsetAlignment"):
        assert limits[name] in (1, 2, 4, 8, 16, 32, 64, 128, 256), name
    assert limits["maxBufferSize"] > DEFAULT_LIMITS["maxBufferSize"], "only the default was asked for"


def test_features_and_subgroups() -> None:
    properties = torch.webgpu.get_device_properties()
    assert isinstance(properties.features, tuple)
    assert all(isinstance(name, str) and name == name.lower() for name in properties.features)
    assert len(set(properties.features)) == len(properties.features)
    least, most = properties.subgroup_sizes
    assert 0 <= least <= most <= 128
    if "subgroups" in properties.features:
        assert least >= 4
        assert least & (least - 1) == most & (most - 1) == 0, "powers of two"


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_both_runtimes_fill_them_in(runtime: str) -> None:
    script = """
    import torch
    p = torch.webgpu.get_device_properties()
    assert p.name and p.vendor and p.driver and p.backend and p.library and p.limits, p
    print(p.runtime, p.type, p.backend, p.limits["maxStorageBufferBindingSize"], p.subgroup_sizes)
    print(*sorted(p.limits))
    """
    said, limits = output_of(script, TORCH_WEBGPU_RUNTIME=runtime)
    assert said.startswith("wgpu-native" if runtime == "wgpu" else "dawn")
    assert set(limits.split()) > set(DEFAULT_LIMITS)


def test_properties_are_a_value() -> None:
    properties = torch.webgpu.get_device_properties()
    assert properties == torch.webgpu.get_device_properties("webgpu:0") == torch.webgpu.get_device_properties(0)
    assert properties.name in repr(properties)
    with pytest.raises(dataclasses.FrozenInstanceError):
        properties.name = "another"  # type: ignore[misc]


@pytest.mark.parametrize("device", [None, 0, "webgpu", "webgpu:0", torch.device("webgpu", 0)], ids=str)
def test_forms_of_a_device(device: Any) -> None:
    assert torch.webgpu.get_device_name(device) == torch.webgpu.get_device_properties().name
    torch.webgpu.synchronize(device)
    torch.webgpu.set_device(device)
    with torch.webgpu.device(device) as chosen:
        assert chosen.idx == torch.webgpu.current_device() == 0


def test_devices_that_are_not_there() -> None:
    for function in (torch.webgpu.get_device_properties, torch.webgpu.set_device, torch.webgpu.synchronize):
        with pytest.raises(RuntimeError, match="invalid device ordinal 1"):
            function(1)
        with pytest.raises(RuntimeError, match="invalid device ordinal 3"):
            function("webgpu:3")
        with pytest.raises(ValueError, match="expected a webgpu device"):
            function("cpu")
    with pytest.raises(RuntimeError, match="invalid device ordinal 1"):
        torch.empty(1, device="webgpu:1")


def test_every_public_name_is_there() -> None:
    for name in torch.webgpu.__all__:
        assert getattr(torch.webgpu, name) is not None, name
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = torch.webgpu.no_such_name
    assert torch.webgpu.is_bf16_supported()
    assert torch.webgpu.get_amp_supported_dtype() == [torch.float16, torch.bfloat16]


# torch.device, torch.accelerator


def test_the_device_and_its_index() -> None:
    assert torch.device("webgpu").index is None
    assert torch.device("webgpu:0") == torch.device("webgpu", 0) == torch.device(0)
    assert str(torch.device("webgpu", 0)) == "webgpu:0"
    x = torch.empty(2, device="webgpu")
    assert x.device == torch.device("webgpu", 0)
    assert x.get_device() == 0
    assert torch._C._get_privateuse1_backend_name() == "webgpu"


def test_it_is_the_accelerator() -> None:
    accelerator = torch.accelerator
    assert accelerator.is_available()
    assert accelerator.current_accelerator() == torch.device("webgpu")
    assert accelerator.device_count() == torch.webgpu.device_count() == 1
    assert accelerator.current_device_index() == 0
    accelerator.set_device_index(0)
    with accelerator.device_index(0):
        assert accelerator.current_device_index() == 0
    with pytest.raises(RuntimeError, match="invalid device ordinal 1"):
        accelerator.set_device_index(1)
    accelerator.synchronize()


@pytest.mark.parametrize("device", [None, "webgpu", torch.device("webgpu", 0)], ids=str)
def test_the_device_module(device: Any) -> None:
    assert torch.get_device_module(device) is torch.webgpu


def test_as_default_device() -> None:
    with torch.device("webgpu"):
        assert torch.ones(2).is_webgpu
        assert nn.Parameter(torch.empty(2)).is_webgpu
    torch.set_default_device("webgpu")
    try:
        assert torch.ones(2).is_webgpu
        assert torch.get_default_device() == torch.device("webgpu", 0)
    finally:
        torch.set_default_device(None)
    assert torch.ones(2).is_cpu


# Methods of tensors, storages and modules


def test_tensor_methods() -> None:
    here = torch.arange(6.0)
    there = here.webgpu()
    assert there.is_webgpu
    assert not here.is_webgpu
    assert not (there.is_cpu or there.is_cuda or there.is_mps or there.is_xpu)
    assert torch.equal(there.cpu(), here)
    for again in (there.webgpu(), there.webgpu(0), there.webgpu("webgpu:0"), there.to("webgpu"), there.to(0)):
        assert again is there, "nothing to move"
    assert here.webgpu(non_blocking=True).is_webgpu
    assert there.to("webgpu", copy=True).data_ptr() != there.data_ptr()


def test_tensor_method_keeps_and_changes_the_layout() -> None:
    x = torch.arange(24.0).view(1, 2, 3, 4)
    assert x.webgpu(memory_format=torch.channels_last).is_contiguous(memory_format=torch.channels_last)
    assert x.transpose(1, 3).webgpu().stride() == x.transpose(1, 3).stride()


def test_tensor_method_refuses_other_devices() -> None:
    with pytest.raises(RuntimeError, match="must be webgpu device"):
        torch.ones(1).webgpu("cuda")
    with pytest.raises(RuntimeError, match="invalid device ordinal 1"):
        torch.ones(1).webgpu(1)


def test_gradients_flow_through_the_move() -> None:
    x = torch.arange(3.0, requires_grad=True)
    (x.webgpu() * 2).cpu().sum().backward()
    assert x.grad is not None
    assert x.grad.is_cpu
    assert x.grad.tolist() == [2.0] * 3


def test_the_old_type_names() -> None:
    x = torch.ones(2, dtype=torch.int64, device="webgpu")
    assert x.type() == "torch.webgpu.LongTensor"
    assert x.type(torch.float16).type() == "torch.webgpu.HalfTensor"


def test_storage_methods() -> None:
    here = torch.arange(4, dtype=torch.uint8).untyped_storage()
    there = here.webgpu()
    assert there.is_webgpu
    assert not here.is_webgpu
    assert there.device == torch.device("webgpu", 0)
    assert there.get_device() == 0
    assert there.webgpu() is there
    assert there.cpu().tolist() == there.tolist() == [0, 1, 2, 3]
    assert there[2] == 2
    twin = there.clone()
    assert twin.is_webgpu
    assert twin.data_ptr() != there.data_ptr()
    assert there.fill_(7).tolist() == [7] * 4
    assert twin.tolist() == [0, 1, 2, 3]
    assert there.copy_(twin).tolist() == [0, 1, 2, 3]
    there.resize_(2)
    assert there.tolist() == [0, 1]
    assert torch.UntypedStorage(8, device="webgpu").nbytes() == 8


def test_typed_storage_methods() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # all of it is deprecated, and still what old files hold
        storage = torch.arange(4.0).storage().webgpu()
        assert storage.is_webgpu
        assert storage.dtype == torch.float32
        assert storage.tolist() == [0.0, 1.0, 2.0, 3.0]
        assert not storage.cpu().is_webgpu


def test_module_methods() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    assert model.webgpu() is model
    assert all(value.is_webgpu for value in model.state_dict().values())
    assert all(isinstance(parameter, nn.Parameter) for parameter in model.parameters())
    model.cpu().webgpu(0)
    assert all(parameter.device == torch.device("webgpu", 0) for parameter in model.parameters())


def test_packed_sequences() -> None:
    packed = nn.utils.rnn.pack_sequence([torch.ones(3, 2), torch.ones(1, 2)])
    assert not packed.is_webgpu
    there = packed.webgpu()
    assert there.is_webgpu
    assert there.data.is_webgpu
    assert there.batch_sizes.is_cpu, "as PyTorch demands"
