"""Masks made without a device: on the CPU, as without the device, in processes that have not used it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

from torch_webgpu import device


def _default_to_cpu(make: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(make)

    @functools.wraps(make)
    def run(*arguments: Any, **options: Any) -> Any:
        bound = signature.bind(*arguments, **options)
        if bound.arguments.get("device") is None and not device.is_initialized():
            bound.arguments["device"] = "cpu"
        return make(*bound.args, **bound.kwargs)

    return run


def adapt(module: ModuleType) -> None:
    for name in ("create_mask", "create_block_mask"):
        setattr(module, name, _default_to_cpu(getattr(module, name)))
