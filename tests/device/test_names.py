"""The names of torch.cuda that code looks for in a device's module: streams, memory reports, typed tensors."""

from __future__ import annotations

import gc

import pytest
import torch

from tests.support import DEVICE

TYPED = {
    "FloatTensor": torch.float32,
    "HalfTensor": torch.float16,
    "BFloat16Tensor": torch.bfloat16,
    "LongTensor": torch.int64,
    "IntTensor": torch.int32,
    "ShortTensor": torch.int16,
    "CharTensor": torch.int8,
    "ByteTensor": torch.uint8,
    "BoolTensor": torch.bool,
}


def test_stream_contexts() -> None:
    mine = torch.webgpu.Stream()
    with torch.webgpu.stream(mine):
        assert torch.webgpu.current_stream() == mine
        x = torch.ones(3, device=DEVICE) + 1
    with torch.webgpu.StreamContext(None), torch.webgpu.stream(torch.webgpu.current_stream()):
        y = x * 2
    torch.webgpu.set_stream(torch.webgpu.default_stream())
    assert y.tolist() == [4.0] * 3
    with pytest.raises(ValueError, match="expected a stream of webgpu"):
        torch.webgpu.set_stream(torch.Stream(device="cpu"))


def test_device_contexts() -> None:
    with torch.webgpu.device_of(torch.ones(1, device=DEVICE)), torch.webgpu.device_of(torch.ones(1)):
        assert torch.webgpu.current_device() == 0
    assert torch.webgpu.can_device_access_peer(0, 0) is False


def test_capability() -> None:
    capability = torch.webgpu.get_device_capability()
    properties = torch.webgpu.get_device_properties()
    assert capability["limits"] == properties.limits
    assert capability["features"] == properties.features
    dtypes = torch.accelerator.get_device_capability()["supported_dtypes"]
    assert {torch.float32, torch.bfloat16, torch.int64, torch.bool} <= dtypes
    assert not {torch.float64, torch.complex128} & dtypes


def test_memory_reports() -> None:
    tensor = torch.empty(1 << 20, device=DEVICE)
    summary = torch.webgpu.memory_summary()
    assert "allocated" in summary
    assert "buffers created" in summary
    assert "buffers created" not in torch.webgpu.memory_summary(abbreviated=True)
    (segment,) = torch.webgpu.memory_snapshot()
    assert segment["allocated_size"] == torch.webgpu.memory_allocated() >= tensor.nbytes
    assert segment["total_size"] == sum(block["size"] for block in segment["blocks"])
    torch.webgpu.ipc_collect()


def test_memory_fraction() -> None:
    gc.collect()
    total = torch.webgpu.mem_get_info()[1]
    allowed = torch.webgpu.memory_allocated() + (8 << 20)
    torch.webgpu.set_per_process_memory_fraction(allowed / total)
    try:
        small = torch.empty(1 << 20, dtype=torch.uint8, device=DEVICE)
        with pytest.raises(torch.OutOfMemoryError, match="set_per_process_memory_fraction"):
            torch.empty(16 << 20, dtype=torch.uint8, device=DEVICE)
        assert small.zero_().sum().item() == 0
        assert torch.webgpu.get_per_process_memory_fraction() == allowed / total
        torch.webgpu.set_per_process_memory_fraction(0)
        with pytest.raises(torch.OutOfMemoryError):
            torch.empty(16, device=DEVICE)
    finally:
        torch.webgpu.set_per_process_memory_fraction(1.0)
    assert torch.webgpu.get_per_process_memory_fraction() == 1
    torch.empty(16 << 20, dtype=torch.uint8, device=DEVICE)
    with pytest.raises(ValueError, match="between 0 and 1"):
        torch.webgpu.set_per_process_memory_fraction(1.5)


@pytest.mark.parametrize("name", TYPED)
def test_typed_names(name: str) -> None:
    kind, dtype = getattr(torch.webgpu, name), TYPED[name]
    tensor = torch.ones(2).type(f"torch.webgpu.{name}")
    assert (tensor.dtype, tensor.device.type) == (dtype, DEVICE)
    assert tensor.type() == f"torch.webgpu.{name}"
    assert isinstance(tensor, kind)
    assert not isinstance(tensor.cpu(), kind)
    assert not isinstance(3, kind)
    assert torch.ones(2).type(kind).type() == tensor.type()
    assert isinstance(kind(2, 3), kind)
    assert kind(2, 3).shape == (2, 3)
    assert kind([1, 0]).tolist() == torch.tensor([1, 0], dtype=dtype).tolist()
    assert kind().numel() == 0


@pytest.mark.filterwarnings("ignore:torch.set_default_tensor_type")
def test_default_tensor_type() -> None:
    """As torch.cuda.FloatTensor: new tensors are of its dtype, on its device, until another type is the default."""
    try:
        for name, dtype in (("FloatTensor", torch.float32), ("HalfTensor", torch.float16)):
            for kind in (f"torch.webgpu.{name}", getattr(torch.webgpu, name)):
                torch.set_default_tensor_type(kind)
                for made in (torch.ones(2), torch.tensor([1.5]), torch.rand(2), torch.nn.Linear(1, 1).weight):
                    assert (made.dtype, made.device.type) == (dtype, DEVICE)
        with pytest.raises(TypeError, match="only floating-point types"):
            torch.set_default_tensor_type(torch.webgpu.LongTensor)
    finally:
        torch.set_default_tensor_type(torch.FloatTensor)
    assert (torch.ones(2).dtype, torch.ones(2).device.type) == (torch.float32, "cpu")
    torch.set_default_device(DEVICE)
    try:
        with pytest.raises(TypeError, match="only floating-point types"):
            torch.set_default_tensor_type(torch.webgpu.LongTensor)
        torch.set_default_tensor_type(torch.FloatTensor)
        assert torch.ones(2).device.type == DEVICE, "set_default_device is not undone by another call's reset"
    finally:
        torch.set_default_device(None)


def test_no_name_for_what_the_device_has_not() -> None:
    assert not hasattr(torch.webgpu, "DoubleTensor")
    assert not hasattr(torch.webgpu, "NoTensor")


def test_amp_names() -> None:
    with torch.webgpu.amp.autocast():
        assert torch.is_autocast_enabled(DEVICE)
        assert torch.get_autocast_dtype(DEVICE) == torch.float16
        with torch.webgpu.amp.autocast(enabled=False):
            assert not torch.is_autocast_enabled(DEVICE)
    assert torch.webgpu.amp.GradScaler(init_scale=8.0).scale(torch.ones(1, device=DEVICE)).item() == 8
