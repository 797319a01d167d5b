"""The device as Dynamo asks for it. Inductor is half imported at that time: nothing of it is imported here."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch._dynamo.device_interface import DeviceInterface

from torch_webgpu import _C
from torch_webgpu import device as webgpu


class Properties(NamedTuple):
    """What heuristics read: mostly whether a reduction has rows enough to keep the device busy."""

    name: str
    multi_processor_count: int
    max_threads_per_multi_processor: int
    regs_per_multiprocessor: int
    warp_size: int
    max_threads_per_block: int
    major: None = None


class WebGPUInterface(DeviceInterface):
    device = webgpu.device
    Event = torch.Event
    Stream = torch.Stream
    current_device = staticmethod(webgpu.current_device)
    set_device = staticmethod(webgpu.set_device)
    device_count = staticmethod(webgpu.device_count)
    is_available = staticmethod(webgpu.is_available)
    current_stream = staticmethod(webgpu.current_stream)
    synchronize = staticmethod(webgpu.synchronize)
    memory_allocated = staticmethod(webgpu.memory_allocated)

    class Worker:
        current_device = staticmethod(webgpu.current_device)
        set_device = staticmethod(webgpu.set_device)

        @staticmethod
        def get_device_properties(device: Any = None) -> Properties:
            software = _C.target()["software"]
            # A software adapter has as many workers as the machine has cores; a GPU's are not told.
            return Properties("webgpu", 2 if software else 64, 1024, 65536, 32, 256)

    @staticmethod
    def exchange_device(index: int) -> int:
        return 0

    @staticmethod
    def maybe_exchange_device(index: int) -> int:
        return 0

    @staticmethod
    def stream(stream: torch.Stream) -> Any:
        return stream

    @staticmethod
    def set_stream(stream: torch.Stream) -> None:
        pass

    @staticmethod
    def get_raw_stream(index: int) -> int:
        return 0

    @staticmethod
    def get_compute_capability(device: Any = None) -> str:
        return ""

    @staticmethod
    def is_bf16_supported(including_emulation: bool = False) -> bool:
        return True

    @classmethod
    def is_dtype_supported(cls, dtype: torch.dtype, including_emulation: bool = False) -> bool:
        return dtype not in (torch.float64, torch.complex128)

    @staticmethod
    def is_triton_capable(device: Any = None) -> bool:
        return False
