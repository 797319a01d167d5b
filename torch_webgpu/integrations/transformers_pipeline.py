"""Pipelines: `device=0` and no device at all mean the accelerator, of which transformers has a closed list."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

import torch

from torch_webgpu import device


def _is_alone() -> bool:
    others = torch.cuda.is_available() or torch.backends.mps.is_available() or torch.xpu.is_available()
    return not others and device.is_available()


def _is_ordinal(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def adapt(module: ModuleType) -> None:
    initialize = module.Pipeline.__init__

    @functools.wraps(initialize)
    def __init__(self: Any, model: Any, *arguments: Any, **options: Any) -> None:
        given = options.get("device")
        placed = getattr(model, "hf_device_map", None)
        if placed is None and (given is None or _is_ordinal(given)) and _is_alone():
            options["device"] = torch.device("webgpu", given or 0)
        initialize(self, model, *arguments, **options)
        if placed and _is_ordinal(next(iter(placed.values()))) and self.device.type == "cpu" and _is_alone():
            self.device = torch.device("webgpu", 0)

    module.Pipeline.__init__ = __init__
