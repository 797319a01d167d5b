"""PyTorch's module_db compiled, forward and backward: a sample chosen by name, or all with TORCH_WEBGPU_COMPILE=all."""

from __future__ import annotations

import copy
import itertools
import warnings
from typing import Any

import pytest
import torch
from torch.testing._internal.common_modules import ModuleInfo

from tests.compile.support import ALL, is_chosen
from tests.models.test_modules import DTYPE, TOLERANCE, build, cases, is_random, run
from tests.support import DEVICE, assert_same, on_device, to_device

EVERY = 14
CHOSEN = [case for case in cases() if is_chosen(str(case.id), EVERY)]


@pytest.mark.parametrize(("info", "training"), CHOSEN)
def test_compiled(info: ModuleInfo, training: bool) -> None:
    warnings.simplefilter("ignore")
    inputs = info.module_inputs_func(info, device="cpu", dtype=DTYPE, requires_grad=True, training=training)
    for given in itertools.islice(inputs, None if ALL else 2):
        if given.forward_input is None or ("BatchNorm" in info.name and given.forward_input.args[0].numel() == 0):
            continue
        module = build(info, given, training)
        there = copy.deepcopy(module).to(DEVICE)
        torch._dynamo.reset()
        call: Any = torch.compile(there, backend="webgpu")
        arguments = (given.forward_input.args, given.forward_input.kwargs)
        expected, wanted, seeds = run(module, arguments, None)
        with on_device(None, waits=None):
            actual, gradients, _ = run(call, to_device(arguments), seeds)
        if is_random(module):
            expected, wanted, actual, gradients = (
                [None if x is None else torch.zeros_like(x) for x in values]
                for values in (expected, wanted, actual, gradients)
            )
        message = f"{info.name} {given.desc}"
        assert_same(actual, expected, message, strides=False, **TOLERANCE)
        assert_same(gradients, wanted, f"gradients of {message}", strides=False, **TOLERANCE)
        if not is_random(module):
            state, wanted_state = there.state_dict(), module.state_dict()
            assert_same([state[name] for name in wanted_state], list(wanted_state.values()), f"state of {message}",
                        strides=False, **TOLERANCE)  # fmt: skip
