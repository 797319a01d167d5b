"""flex_attention takes tensors of the device, and autocast casts them. Masks made without a device are on the CPU, as
without the device, in processes that have not used it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
from torch._C import DispatchKeySet

from torch_webgpu import device

# The size of a block that PyTorch gives a mask that hides nothing.
ENDLESS = 1 << 30


def _default_to_cpu(make: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(make)

    @functools.wraps(make)
    def run(*arguments: Any, **options: Any) -> Any:
        bound = signature.bind(*arguments, **options)
        if bound.arguments.get("device") is None and not device.is_initialized():
            bound.arguments["device"] = "cpu"
        return make(*bound.args, **bound.kwargs)

    return run


def _accept(validate: Callable[..., None]) -> Callable[..., None]:
    """PyTorch's list of the devices that flex_attention runs on is closed."""

    @functools.wraps(validate)
    def run(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> None:
        if query.device.type != "webgpu":
            validate(query, key, value)

    return run


def _without_lists(make: Callable[..., Any], block_mask: Any, visible: Callable[..., Any]) -> Callable[..., Any]:
    """Without a mask there is one block. Its lists of queries are those of keys, and need no sorting: what is made here
    is a constant of a compiled graph."""

    @functools.wraps(make)
    def run(query: torch.Tensor, key: torch.Tensor) -> Any:
        if query.device.type != "webgpu":
            return make(query, key)
        length_and_number = torch.tensor([1, 0], dtype=torch.int32, device=query.device)
        counts, indices = length_and_number[:1].view(1, 1, 1), length_and_number[1:].view(1, 1, 1, 1)
        lists = (counts, indices, None, None)
        return block_mask((1, 1), *lists, *lists, BLOCK_SIZE=(ENDLESS, ENDLESS), mask_mod=visible)

    return run


def _register_autocast(flex_attention: Any) -> None:
    autocast: Any = torch._C._dispatch_key_parse("AutocastPrivateUse1")

    def cast(query: Any, key: Any, value: Any, *others: Any) -> Any:
        dtype = torch.get_autocast_dtype("webgpu")
        given = [x.to(dtype) if x.is_floating_point() else x for x in (query, key, value)]
        with torch._C._ExcludeDispatchKeyGuard(DispatchKeySet(autocast)):
            return flex_attention(*given, *others)

    flex_attention.py_impl(autocast)(cast)


def adapt(module: ModuleType) -> None:
    for name in ("create_mask", "create_block_mask"):
        setattr(module, name, _default_to_cpu(getattr(module, name)))
    module._validate_device = _accept(module._validate_device)  # type: ignore[attr-defined]
    module._create_empty_block_mask = _without_lists(  # type: ignore[attr-defined]
        module._create_empty_block_mask, module.BlockMask, module.noop_mask
    )
    _register_autocast(module.flex_attention_hop)
