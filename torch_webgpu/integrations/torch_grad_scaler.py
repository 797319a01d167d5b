"""``torch.amp.GradScaler`` takes the reciprocal of its scale in float64, which would wait for the CPU."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

import torch


class _InSinglePrecision:
    """The scale, as far as ``unscale_`` looks at it: ``scale.double().reciprocal().float()``."""

    def __init__(self, scale: torch.Tensor) -> None:
        self.device, self._scale = scale.device, scale

    def double(self) -> _InSinglePrecision:
        return self

    def reciprocal(self) -> _InSinglePrecision:
        return self

    def float(self) -> torch.Tensor:
        return self._scale.reciprocal()


def adapt(module: ModuleType) -> None:
    unscale = module.GradScaler.unscale_

    @functools.wraps(unscale)
    def unscale_(self: Any, optimizer: torch.optim.Optimizer) -> None:
        scale = self._scale
        if scale is None or scale.device.type != "webgpu":
            return unscale(self, optimizer)
        self._scale = _InSinglePrecision(scale)
        try:
            return unscale(self, optimizer)
        finally:
            self._scale = scale

    module.GradScaler.unscale_ = unscale_
