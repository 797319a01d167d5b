"""OpInfos compiled, forward and backward: a sample that is chosen by name, or all with TORCH_WEBGPU_COMPILE=all.

`python -m tests.compile.coverage --backward` tries all in processes of their own and writes a table.
"""

from __future__ import annotations

import itertools
import os
import zlib

import pytest
import torch

from tests.compile.coverage import check
from tests.ops import opinfo
from tests.ops.native_ops import tolerance

# Inductor's lowerings give another answer, or refuse, on every device.
NOT_OURS = ("empty", "item", "nonzero", "unique")
EVERY = 1 if os.environ.get("TORCH_WEBGPU_COMPILE") == "all" else 45


def chosen() -> list[str]:
    names = [name for name, op in opinfo.opinfos().items() if torch.float32 in op.supported_dtypes("cpu")]
    return [name for name in names if zlib.crc32(name.encode()) % EVERY == 0 and not name.startswith(NOT_OURS)]


@pytest.mark.parametrize("op_name", chosen())
def test_compiled(op_name: str) -> None:
    torch.webgpu.set_fallback_mode("quiet")
    op = opinfo.opinfos()[op_name]
    for call in itertools.islice(opinfo.samples_of(op, torch.float32, grad=op.supports_autograd), 1):
        check(op, call, tolerance(op_name, torch.float32), op.supports_autograd)
