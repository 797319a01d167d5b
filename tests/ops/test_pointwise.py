"""Every pointwise op, in every dtype and layout, gives the CPU's answer or the CPU's error."""

import os

import pytest
import torch

from tests.ops.table import BY_NAME, OPS, Op, cases, check, operands
from tests.support import DTYPES, name_of

LARGE = 2_500_003  # more than one grid of workgroups, and a tail


def by_name(op: Op) -> str:
    return op.name


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
@pytest.mark.parametrize("op", OPS, ids=by_name)
def test_layouts(op: Op, dtype: torch.dtype) -> None:
    for name, args in cases(op, dtype):
        check(op, name, args)


@pytest.mark.once
def test_the_runtime_is_the_one_asked_for() -> None:
    asked = os.environ.get("TORCH_WEBGPU_RUNTIME", "dawn")
    assert torch.webgpu.get_device_properties().runtime == {"wgpu": "wgpu-native"}.get(asked, asked)


@pytest.mark.once
@pytest.mark.parametrize("op", OPS, ids=by_name)
def test_once(op: Op) -> None:
    check(op, "contiguous", tuple(operands(op, ((6, 11),), torch.float32)))


@pytest.mark.parametrize("dtype", (torch.float32, torch.uint8), ids=name_of)
@pytest.mark.parametrize("op", OPS, ids=by_name)
def test_large(op: Op, dtype: torch.dtype) -> None:
    check(op, "large", tuple(operands(op, ((LARGE,),), dtype)))


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
@pytest.mark.parametrize("name", ("add", "lt"))
def test_large_strided(name: str, dtype: torch.dtype) -> None:
    op = BY_NAME[name]
    check(op, "large transposed", tuple(x.t() for x in operands(op, ((1201, 1301),), dtype)))
