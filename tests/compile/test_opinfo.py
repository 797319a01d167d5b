"""OpInfos compiled: float32 forward and backward, other dtypes forward.

A sample that is chosen by name, or all with TORCH_WEBGPU_COMPILE=all. `python -m tests.compile.coverage` tries
them in processes of their own and writes a table.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

from tests.compile.coverage import check
from tests.compile.known import EXPECTED_FAILURES, NO_SAMPLE
from tests.compile.support import is_chosen
from tests.ops import opinfo
from tests.ops.native_ops import tolerance
from tests.support import name_of

EVERY = {torch.float32: 16, torch.float16: 32, torch.bfloat16: 32, torch.int64: 32}


def cases() -> list[Any]:
    """(op, dtype), with those marked that are known to fail."""
    found = []
    for dtype, every in EVERY.items():
        for name, op in opinfo.opinfos().items():
            if dtype not in op.supported_dtypes("cpu") or not is_chosen(name, every) or NO_SAMPLE.fullmatch(name):
                continue
            reason = EXPECTED_FAILURES.get((name, dtype)) or EXPECTED_FAILURES.get((name, None))
            marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason else []
            found.append(pytest.param(name, dtype, id=f"{name}-{name_of(dtype)}", marks=marks))
    return found


@pytest.mark.parametrize(("name", "dtype"), cases())
def test_compiled(name: str, dtype: torch.dtype) -> None:
    torch.webgpu.set_fallback_mode("quiet")
    op = opinfo.opinfos()[name]
    backward = dtype is torch.float32 and op.supports_autograd
    tried = 0
    for call in itertools.islice(opinfo.samples_of(op, dtype, grad=backward), 2):
        tried += check(op, call, tolerance(name, dtype), backward)
    assert tried > 0, "not one sample that the device can hold"
