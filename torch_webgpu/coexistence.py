"""What PyTorch would decide for the CPU's users because a device is installed, and must not."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import torch

from torch_webgpu import device


def _device_to_spread_over() -> str | None:
    """The type that `nn.DataParallel` moves modules to; None makes it run them as they are, as it does on MPS."""
    found = torch._utils._get_available_device_type()
    if found != "webgpu":
        return found
    if device.is_initialized():
        warnings.warn(
            "a process has one webgpu device, so torch.nn.DataParallel runs the module as it is: use "
            "torch.nn.parallel.DistributedDataParallel for several processes",
            stacklevel=3,
        )
    return None


def install() -> None:
    module: Any = sys.modules["torch.nn.parallel.data_parallel"]  # its package has a function of that name
    module._get_available_device_type = _device_to_spread_over
