"""torch.compile for the device: Inductor with a generator of WGSL.

Nothing is imported before the first compilation: `install` waits for torch._dynamo and torch._inductor.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.util
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


def install() -> None:
    """Registers the device where Dynamo and Inductor look for it, once somebody has imported them."""
    _after_import("torch._dynamo.device_interface", _register_interface)
    _after_import("torch._inductor.compile_fx", _register_backend)
    _after_import("torch._dynamo.backends.registry", _register_name)
    _after_import("torch._dynamo.trace_rules", _skip_own_frames)
    _after_import("torch._functorch._aot_autograd.utils", _register_random_states)
    _after_import("torch._dynamo.variables.optimizer", _keep_steps_on_the_device)


def _register_interface() -> None:
    from torch._dynamo.device_interface import register_interface_for_device

    from torch_webgpu.inductor.device_interface import WebGPUInterface

    register_interface_for_device("webgpu", WebGPUInterface)


def _skip_own_frames() -> None:
    """Functions of torch.webgpu are called, not traced, as those of torch.cuda are; so are compile_shader's kernels."""
    from torch._dynamo import trace_rules

    trace_rules.add("torch_webgpu.device")
    trace_rules.add("torch_webgpu.shader")


def _register_random_states() -> None:
    """Activation checkpointing gives a block the same random numbers when it is recomputed."""
    from torch._functorch._aot_autograd.utils import register_graphsafe_rng_device_type

    register_graphsafe_rng_device_type("webgpu")


def _keep_steps_on_the_device() -> None:
    """A compiled optimizer counts its steps on the device, as on CUDA: those on the CPU would be sent in each call."""
    from torch._dynamo.variables.optimizer import OptimizerVariable

    original = OptimizerVariable._set_capturable

    @functools.wraps(original)
    def set_capturable(self: Any, tx: Any) -> None:
        for group in self.value.param_groups:
            parameters = group.get("params", [])
            is_new = all(p.device.type == "webgpu" and p not in self.value.state for p in parameters)
            if "capturable" in group and is_new:
                group["capturable"] = True
        original(self, tx)

    OptimizerVariable._set_capturable = set_capturable  # type: ignore[method-assign]


def _register_backend() -> None:
    from torch_webgpu.inductor.registration import register

    register()


def _register_name() -> None:
    from torch._dynamo.backends.registry import register_backend

    register_backend(webgpu_backend, name="webgpu")


def webgpu_backend(gm: Any, inputs: Any, *, mode: Any = None, options: Any = None, dynamic: Any = None) -> Any:
    """`torch.compile(model, backend="webgpu")`: Inductor, and an error if nothing is on the device."""
    import torch
    from torch._inductor.compile_fx import compile_fx  # noqa: F401

    from torch_webgpu.inductor.registration import _has_webgpu

    parameters = [*gm.parameters(), *gm.buffers(), *inputs]
    tensors = [x for x in parameters if isinstance(x, torch.Tensor)]
    if any(x.device.type == "cpu" for x in tensors) and not _has_webgpu(gm, tensors):
        raise RuntimeError(
            'torch.compile(backend="webgpu"): the model and its inputs are on the CPU; call .to("webgpu") on both first'
        )
    return torch._TorchCompileInductorWrapper(mode, options, dynamic)(gm, inputs)


class _Watcher(importlib.abc.MetaPathFinder):
    """Calls a function right after a module was executed, and is gone."""

    def __init__(self, name: str, function: Callable[[], None]) -> None:
        self.name, self.function = name, function

    def find_spec(self, fullname: str, path: Any, target: ModuleType | None = None) -> Any:
        if fullname != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            return spec
        execute: Any = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            self.function()

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _after_import(name: str, function: Callable[[], None]) -> None:
    module = sys.modules.get(name)
    if module is not None and not getattr(module.__spec__, "_initializing", False):
        function()
    else:
        sys.meta_path.insert(0, _Watcher(name, function))
