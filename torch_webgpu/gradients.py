"""`zero_grad(set_to_none=False)` of optimizers and modules: one launch for many gradients.

PyTorch has the loop for that in `Optimizer.zero_grad`, for optimizers made with `foreach=True` or `fused=True`. Here it
is the default, as foreach is for their steps, and serves modules, which have none of their own.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

_PLAIN = (torch.Tensor, nn.Parameter)


def _suit(parameters: Iterable[torch.Tensor]) -> bool:
    return all(type(parameter) in _PLAIN and parameter.device.type == "webgpu" for parameter in parameters)


def install() -> None:
    of_optimizer, of_module = Optimizer.zero_grad, nn.Module.zero_grad

    def together(groups: list[dict[str, Any]], name: str) -> None:
        """PyTorch's loop, for what looks like an optimizer to it."""
        optimizer: Any = types.SimpleNamespace(
            defaults={"foreach": True}, param_groups=groups, _zero_grad_profile_name=name
        )
        of_optimizer(optimizer, set_to_none=False)

    @torch._disable_dynamo
    @functools.wraps(of_optimizer)
    def zero_grad_of_optimizer(self: Optimizer, set_to_none: bool = True) -> None:
        is_open = self.defaults.get("foreach") is None
        if set_to_none or not is_open or not all(_suit(group["params"]) for group in self.param_groups):
            of_optimizer(self, set_to_none)
        else:
            together(self.param_groups, getattr(self, "_zero_grad_profile_name", "Optimizer.zero_grad"))

    @functools.wraps(of_module)
    def zero_grad_of_module(self: nn.Module, set_to_none: bool = True) -> None:
        is_for_us = not (set_to_none or torch.compiler.is_compiling() or getattr(self, "_is_replica", False))
        parameters = list(self.parameters()) if is_for_us else []
        if is_for_us and _suit(parameters):
            together([{"params": parameters}], "Module.zero_grad")
        else:
            of_module(self, set_to_none)

    Optimizer.zero_grad = zero_grad_of_optimizer  # type: ignore[method-assign]
    nn.Module.zero_grad = zero_grad_of_module  # type: ignore[method-assign]
