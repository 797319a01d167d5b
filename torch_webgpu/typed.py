"""``torch.webgpu.FloatTensor`` and its like, which code from before devices and dtypes were arguments looks for."""

from __future__ import annotations

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

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, torch.Tensor) and value.device.type == "webgpu" and value.dtype == cls.dtype

    def __call__(cls, *arguments: Any) -> torch.Tensor:
        """The CPU's constructor reads the arguments: sizes, a sequence, a tensor or nothing."""
        return getattr(torch, cls.__name__.rpartition(".")[2])(*arguments).to("webgpu")


def _make(name: str, dtype: torch.dtype) -> _TypedTensor:
    # Tensor.type() knows a type by its whole name.
    attributes = {"dtype": dtype, "layout": torch.strided, "is_cuda": False, "is_sparse": False}
    return _TypedTensor(f"torch.webgpu.{name}", (), {**attributes, "__module__": "torch.webgpu"})


TYPES = {name: _make(name, dtype) for name, dtype in _DTYPES.items()}
