"""The same function compiled for the device and as it is on the CPU."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterable
from typing import Any

import pytest
import torch
from torch.utils._pytree import tree_flatten

from tests.support import FLOATS, assert_same, clone_layout, to_device

# Whether the long lists of ops and modules are run whole.
ALL = os.environ.get("TORCH_WEBGPU_COMPILE") == "all"


def is_chosen(name: str, every: int) -> bool:
    """One of so many of a long list, always the same ones."""
    return ALL or zlib.crc32(name.encode()) % every == 0


def with_once(values: Iterable[Any], *once: Any) -> list[Any]:
    """Parameters of a test, of which some are run on other adapters too (test_adapters.py)."""
    return [pytest.param(value, marks=pytest.mark.once) if value in once else value for value in values]


def dispatches() -> int:
    return torch.webgpu.memory_stats().get("dispatches", 0)


def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    torch._dynamo.reset()
    return torch.compile(function, backend="webgpu", fullgraph=True, **options)


def count(function: Callable[..., Any], *args: Any) -> int:
    """The dispatches of a call that has been made before."""
    before = dispatches()
    function(*args)
    return dispatches() - before


def check(
    function: Callable[..., Any],
    *args: Any,
    launches: int | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    strides: bool = True,
    dynamic: bool | None = None,
) -> Callable[..., Any]:
    """The compiled function gives what the CPU gives, without a fallback, and in so many dispatches."""
    call = compiled(function, dynamic=dynamic)
    expected = tree_flatten(function(*clone_layout(args)))[0]
    # The second call replays what the first one recorded.
    results = [pair for _ in range(2) for pair in zip(expected, tree_flatten(call(*to_device(args)))[0], strict=True)]
    for wanted, got in results:
        # A fused kernel computes in float32 where the CPU rounds each step: two units of the dtype are allowed.
        loose = isinstance(wanted, torch.Tensor) and wanted.dtype in FLOATS[1:] and rtol is None
        if loose:
            assert_same(got, wanted, rtol=4 * torch.finfo(wanted.dtype).eps, atol=1e-2, strides=strides)
        else:
            assert_same(got, wanted, rtol=rtol, atol=atol, strides=strides)
    if launches is not None:
        assert count(call, *to_device(args)) == launches
    return call
