"""DLPack and tracing, where PyTorch's Python code knows devices by name."""

from __future__ import annotations

import functools
import sys
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_any
from torch.utils.dlpack import DLDeviceType

from torch_webgpu import _C

_HOST = (DLDeviceType.kDLCPU, 0)


def _install_dlpack() -> None:
    """DLPack shares memory that its consumer addresses, which WebGPU's buffers are not: they leave as copies in host
    memory, when the caller allows a copy by `copy=True` or by asking for the CPU, and never silently."""
    capsule_of, device_of = Tensor.__dlpack__, Tensor.__dlpack_device__

    @functools.wraps(capsule_of)
    def to_capsule(self: Tensor, **options: Any) -> Any:
        if self.device.type == "webgpu":
            allowed = options.get("copy") or (options.get("dl_device") == _HOST and options.get("copy") is None)
            if not allowed:
                raise BufferError(
                    "webgpu: DLPack can take a tensor only as a copy: pass copy=True, or call .cpu() first"
                )
            options.update(copy=None, dl_device=None, stream=None)
            self = self.cpu()
        return capsule_of(self, **options)

    @functools.wraps(device_of)
    def to_device(self: Tensor) -> Any:
        if self.device.type == "webgpu":
            return DLDeviceType.kDLWebGPU, 0
        if self.device.type == "cpu":  # pinned or not: PyTorch would call pinned memory CUDA's
            return _HOST
        return device_of(self)

    Tensor.__dlpack__ = to_capsule  # type: ignore[method-assign]
    Tensor.__dlpack_device__ = to_device  # type: ignore[method-assign]


def _install_trace_check() -> None:
    """`torch.jit.trace` compares its graph's results with the function's in float64, which WebGPU does not have."""
    module: Any = sys.modules["torch.jit._trace"]
    original, to_double = module._check_trace, Tensor.double

    def double_on_cpu(self: Tensor, *arguments: Any, **options: Any) -> Tensor:
        return to_double(self.cpu() if self.device.type == "webgpu" else self, *arguments, **options)

    @functools.wraps(original)
    def check(inputs: Any, *arguments: Any, **options: Any) -> Any:
        if not tree_any(lambda value: isinstance(value, Tensor) and value.device.type == "webgpu", inputs):
            return original(inputs, *arguments, **options)
        Tensor.double = double_on_cpu  # type: ignore[method-assign, assignment]
        try:
            return original(inputs, *arguments, **options)
        finally:
            del Tensor.double

    module._check_trace = check


def _load(storage: Any, location: str) -> Any:
    """A storage of a file that is opened on the device. The file's storages may not grow, so that a file whose shapes
    lie is refused; PyTorch's own way to a device forgets that."""
    loaded = torch.serialization._deserialize("privateuse1", storage, location)
    if loaded is not None and not storage.resizable():
        _C.forbid_resizing(loaded)
    return loaded


def install() -> None:
    _install_dlpack()
    torch.serialization.register_package(19, lambda storage: None, _load)  # before PyTorch's for this device, 23
    _install_trace_check()
