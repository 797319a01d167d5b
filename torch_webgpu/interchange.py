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
    """DLPack shares memory that its consumer addresses, which WebGPU's buffers are not: a tensor leaves as a copy in
    host memory, unless the caller forbids copies. Between PyTorch's own tensors it stays where it is, and is shared."""
    capsule_of, device_of, tensor_of = Tensor.__dlpack__, Tensor.__dlpack_device__, torch.utils.dlpack.from_dlpack

    @functools.wraps(capsule_of)
    def to_capsule(self: Tensor, **options: Any) -> Any:
        if self.device.type == "webgpu":
            if options.get("copy") is False or options.get("dl_device") not in (None, _HOST):
                raise BufferError(
                    "webgpu: other libraries cannot address the device's memory, so DLPack takes a tensor as a copy in "
                    "the host's: pass copy=None or copy=True, and no other device"
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

    @functools.wraps(tensor_of)
    def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
        stays = device is None or torch.device(device).type == "webgpu"
        if stays and isinstance(ext_tensor, Tensor) and ext_tensor.device.type == "webgpu":
            return tensor_of(capsule_of(ext_tensor, copy=copy)).to(device)
        return tensor_of(ext_tensor, device=device, copy=copy)

    Tensor.__dlpack__ = to_capsule  # type: ignore[method-assign]
    Tensor.__dlpack_device__ = to_device  # type: ignore[method-assign]
    torch.from_dlpack = torch.utils.dlpack.from_dlpack = from_dlpack


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
