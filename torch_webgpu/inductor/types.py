"""How dtypes compute and how they lie in buffers: the table of csrc/shader/dtype.h for generated kernels."""

from __future__ import annotations

import math
from typing import Any

import torch

# What a value of a dtype is in registers. float64 occurs for numbers of the CPU alone, which are passed as float32.
COMPUTE = {
    torch.float32: "f32",
    torch.float16: "f32",
    torch.bfloat16: "f32",
    torch.float64: "f32",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int16: "i32",
    torch.int8: "i32",
    torch.uint8: "i32",
    torch.bool: "bool",
}

# The names of the load and store functions of wgsl/types/storage.wgsl.
PACKED = {
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.int16: "i16",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.bool: "bool",
}

STORED = frozenset(COMPUTE) - {torch.float64}

I32_LOW, I32_HIGH = -(2**31), 2**31 - 1


def size_of(dtype: torch.dtype) -> int:
    return 4 if dtype is torch.float64 else dtype.itemsize


def wgsl_type(compute: str) -> str:
    return "vec2<u32>" if compute == "i64" else compute


def from_raw(dtype: torch.dtype, raw: str) -> str:
    """A value from the low bits of a u32, or from a pair of words."""
    if dtype in PACKED:
        return f"load_{PACKED[dtype]}({raw})"
    return raw if dtype is torch.int64 else f"bitcast<{COMPUTE[dtype]}>({raw})"


def to_raw(dtype: torch.dtype, value: str) -> str:
    if dtype in PACKED:
        return f"store_{PACKED[dtype]}({value})"
    return value if dtype is torch.int64 else f"bitcast<u32>({value})"


def convert(from_compute: str, to_compute: str, value: str) -> str:
    return value if from_compute == to_compute else f"{to_compute}_from_{from_compute}({value})"


def literal(value: Any, compute: str) -> str:
    """A number as an expression. WGSL has neither literals nor constant expressions of infinities and NaN."""
    if compute == "bool":
        return "true" if value else "false"
    if compute == "f32":
        number = float(value)
        if math.isnan(number):
            return "nan_f32()"
        number = float(torch.tensor(number, dtype=torch.float32))
        if math.isinf(number):
            return "inf_f32()" if number > 0 else "(-inf_f32())"
        text = f"{number!r}f"
        return f"({text})" if number < 0 or text.startswith("-") else text
    if isinstance(value, float) and not math.isfinite(value):
        value = -(2**63)
    number = int(value)
    if compute == "i64":
        return f"vec2<u32>({number & 0xFFFFFFFF}u, {number >> 32 & 0xFFFFFFFF}u)"
    number = (number - I32_LOW) % 2**32 + I32_LOW
    if number == I32_LOW:
        return "bitcast<i32>(0x80000000u)"
    return f"({number}i)" if number < 0 else f"{number}i"
