"""``torch.webgpu.amp``: the names of ``torch.cuda.amp``, with webgpu for the device."""

from __future__ import annotations

import functools
from typing import Any

import torch

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


class autocast(torch.amp.autocast):
    def __init__(self, enabled: bool = True, dtype: torch.dtype = torch.float16, cache_enabled: bool = True) -> None:
        super().__init__("webgpu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(torch.amp.GradScaler):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__("webgpu", *arguments, **options)


custom_fwd = functools.partial(torch.amp.custom_fwd, device_type="webgpu")
custom_bwd = functools.partial(torch.amp.custom_bwd, device_type="webgpu")
