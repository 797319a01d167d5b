"""Accelerate, and through it the Trainer of transformers: its default device and the devices of mixed precision."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch

from torch_webgpu import device


def _adapt_state(module: ModuleType) -> None:
    original = module.PartialState.default_device.fget

    def default_device(self: Any) -> torch.device:
        found = original(self)
        return torch.device("webgpu") if found.type == "cpu" and device.is_available() else found

    module.PartialState.default_device = property(default_device)


def _adapt_accelerator(module: ModuleType) -> None:
    # The devices of fp16 are a constant of the constructor.
    code = module.Accelerator.__init__.__code__
    constants = tuple(
        (*constant, "webgpu") if isinstance(constant, tuple) and {"cuda", "mps"} <= set(constant) else constant
        for constant in code.co_consts
    )
    module.Accelerator.__init__.__code__ = code.replace(co_consts=constants)
    scaler_of, bf16_of = module.get_grad_scaler, module.is_bf16_available

    def in_use() -> bool:
        return module.AcceleratorState().device.type == "webgpu"

    def get_grad_scaler(*arguments: Any, **options: Any) -> Any:
        return torch.amp.GradScaler("webgpu", **options) if in_use() else scaler_of(*arguments, **options)

    def is_bf16_available(*arguments: Any, **options: Any) -> bool:
        return in_use() or bf16_of(*arguments, **options)

    module.get_grad_scaler = get_grad_scaler  # type: ignore[attr-defined]
    module.is_bf16_available = is_bf16_available  # type: ignore[attr-defined]


def _adapt_modeling(module: ModuleType) -> None:
    """Where `device_map="auto"` may put layers. The device counts as number 0, as PyTorch's accelerator does."""
    original = module.get_max_memory

    def get_max_memory(max_memory: dict[int | str, Any] | None = None) -> dict[int | str, Any]:
        if max_memory and 0 in max_memory and not torch.cuda.is_available() and device.is_available():
            own, others = max_memory[0], {key: value for key, value in max_memory.items() if key != 0}
            own = module.convert_file_size_to_int(own) if isinstance(own, str) else own
            return {0: own, **original(others)}  # which would warn of a number without a device
        found = original(max_memory)
        if max_memory is not None or set(found) != {"cpu"} or not device.is_available():
            return found
        free, _ = device.mem_get_info()
        # An adapter that shares the host's memory has no other for what it cannot hold.
        has_own = device.get_device_properties().type == "discrete"
        return {0: free, "cpu": found["cpu"]} if has_own else {0: free}

    module.get_max_memory = get_max_memory  # type: ignore[attr-defined]


def adapt(module: ModuleType) -> None:
    if module.__name__ == "accelerate.state":
        _adapt_state(module)
    elif module.__name__ == "accelerate.utils.modeling":
        _adapt_modeling(module)
    else:
        _adapt_accelerator(module)
