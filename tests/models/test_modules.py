"""PyTorch's own module_db: every torch.nn module on the device against the CPU, training and evaluating."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import pytest
import torch
from torch import nn
from torch.testing._internal.common_modules import ModuleInfo, ModuleInput, module_db
from torch.utils._pytree import tree_leaves

from tests.support import DEVICE, assert_same, on_device, to_device

DTYPE = torch.float32
# A gradient is a sum of products in an order that is free, through several layers in some modules.
TOLERANCE = {"rtol": 1e-4, "atol": 2e-5}
# What these draw differs by device: shapes and dtypes are compared.
RANDOM = (nn.RReLU, nn.FractionalMaxPool2d, nn.FractionalMaxPool3d)
# Logarithms near 200 have digits of 1.5e-5, on the CPU too.
GRADIENT_TOLERANCES = {"nn.CTCLoss": {"rtol": 1e-3, "atol": 2e-4}}


def cases() -> list[Any]:
    found = []
    for info in module_db:
        for training in (True, False) if info.train_and_eval_differ else (True,):
            name = f"{info.name}{'' if training else '-eval'}"
            found.append(pytest.param(info, training, id=name))
    return found


def tensors(values: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)]


def floats(values: Any) -> list[torch.Tensor]:
    return [x for x in tensors(values) if x.is_floating_point()]


def run(module: nn.Module, arguments: Any, seeds: list[torch.Tensor] | None) -> tuple[Any, Any, list[torch.Tensor]]:
    """Results, gradients of inputs and parameters, and the weights the results were summed with."""
    args, kwargs = arguments
    results = floats(module(*args, **kwargs))
    outputs = [x for x in results if x.requires_grad]
    if seeds is None:
        generator = torch.Generator().manual_seed(0)
        seeds = [torch.randn(x.shape, generator=generator) for x in outputs]
    inputs = [x for x in (*floats(arguments), *module.parameters()) if x.requires_grad]
    given = to_device(seeds) if results and results[0].device.type == DEVICE else seeds
    gradients: Any = []
    if outputs and inputs:
        gradients = list(torch.autograd.grad(outputs, inputs, given, allow_unused=True))
    return results, gradients, seeds


def build(info: ModuleInfo, given: ModuleInput, training: bool) -> nn.Module:
    torch.manual_seed(0)
    module = info.module_cls(*given.constructor_input.args, **given.constructor_input.kwargs).to(DTYPE).train(training)
    if any(isinstance(x, nn.parameter.UninitializedTensorMixin) for x in module.parameters()):
        with torch.no_grad():  # a lazy module gets its parameters by its first call
            module(*given.forward_input.args, **given.forward_input.kwargs)
    return module


def is_random(module: nn.Module) -> bool:
    return module.training and any(
        isinstance(part, RANDOM) or "Dropout" in type(part).__name__ or getattr(part, "dropout", 0) not in (0, None)
        for part in module.modules()
        if not isinstance(part, nn.Dropout) or part.p > 0
    )


@pytest.mark.parametrize(("info", "training"), cases())
def test_module(info: ModuleInfo, training: bool) -> None:
    warnings.simplefilter("ignore")
    for given in info.module_inputs_func(info, device="cpu", dtype=DTYPE, requires_grad=True, training=training):
        if given.forward_input is None:
            continue
        module = build(info, given, training)
        there = copy.deepcopy(module).to(DEVICE)
        arguments = (given.forward_input.args, given.forward_input.kwargs)
        moved = to_device(arguments)
        expected, wanted, seeds = run(module, arguments, None)
        with on_device(None, waits=None):  # some losses check their targets on the host
            actual, gradients, _ = run(there, moved, seeds)
        if is_random(module):
            expected, wanted, actual, gradients = (
                [None if x is None else torch.zeros_like(x) for x in values]
                for values in (expected, wanted, actual, gradients)
            )
        message = f"{info.name} {given.desc}"
        assert_same(actual, expected, message, strides=False, **TOLERANCE)
        tolerance = GRADIENT_TOLERANCES.get(info.name, TOLERANCE)
        assert_same(gradients, wanted, f"gradients of {message}", strides=False, **tolerance)
        if not is_random(module):
            state, wanted_state = there.state_dict(), module.state_dict()
            assert_same(
                [state[name] for name in wanted_state],
                list(wanted_state.values()),
                f"state of {message}",
                strides=False,
                **TOLERANCE,
            )
