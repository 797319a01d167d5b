"""``torch.webgpu.FloatTensor`` and its like, which code from before devices and dtypes were arguments looks for."""

from __future__ import annotations

import functools
from typing import Any

import torch

_DTYPES = {
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


class _TypedTensor(type):
    """A name for tensors of one dtype: a constructor, and what `isinstance` and `Tensor.type` take."""

    dtype: torch.dtype

    @property
    def of_cpu(cls) -> Any:
        return getattr(torch, cls.__name__.rpartition(".")[2])

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, torch.Tensor) and value.device.type == "webgpu" and value.dtype == cls.dtype

    def __call__(cls, *arguments: Any) -> torch.Tensor:
        """The CPU's constructor reads the arguments: sizes, a sequence, a tensor or nothing."""
        return cls.of_cpu(*arguments).to("webgpu")


def _make(name: str, dtype: torch.dtype) -> _TypedTensor:
    # Tensor.type() knows a type by its whole name.
    attributes = {"dtype": dtype, "layout": torch.strided, "is_cuda": False, "is_sparse": False}
    return _TypedTensor(f"torch.webgpu.{name}", (), {**attributes, "__module__": "torch.webgpu"})


TYPES = {name: _make(name, dtype) for name, dtype in _DTYPES.items()}


def install() -> None:
    """`torch.set_default_tensor_type` takes PyTorch's own types: of ours the dtype, and the device goes the way of
    `torch.set_default_device`."""
    of_pytorch = torch.set_default_tensor_type
    is_ours = False

    @functools.wraps(of_pytorch)
    def set_default_tensor_type(t: Any, /) -> None:
        nonlocal is_ours
        kind = torch._utils._import_dotted_name(t) if isinstance(t, str) else t
        ours = isinstance(kind, _TypedTensor)
        of_pytorch(kind.of_cpu if ours else t)
        if ours or is_ours:
            torch.set_default_device("webgpu" if ours else None)
        is_ours = ours

    torch.set_default_tensor_type = set_default_tensor_type
