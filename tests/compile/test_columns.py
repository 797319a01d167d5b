"""Reductions whose outputs lie side by side: quads of columns, alone and in lines that share rows."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch._inductor.utils import run_and_get_code

from tests.compile.support import check, compiled, with_once
from tests.support import to_device
from torch_webgpu.inductor import launch


def weight_gradient(grad: Tensor, x: Tensor, mean: Tensor, w: Tensor) -> Tensor:
    """Of a layer_norm: one operand has an element for each row, and one for each column."""
    return (grad * (x - mean[:, None])).sum(0) * w + w


def all_of(x: Tensor) -> tuple[Tensor, ...]:
    return (x.sum(0), x.amax(0), x.amin(0), x.argmax(0), x.argmin(0), (x > 1).any(0), x.mean(0))


def texts(function: Callable[..., Any], *args: Tensor) -> list[str]:
    """The main functions of the kernels."""
    _, (code, *_) = run_and_get_code(compiled(function), *to_device(args))
    mains = [part[part.index("fn main(") :] for part in code.split("webgpu_runtime.kernel(")[1:]]
    return [main[: main.index("\n}\n")] for main in mains]


def loads_of_steps(main: str) -> set[str]:
    """What the loop over the rows loads, where it takes one at a time."""
    (loop,) = re.findall(r"\n( *)for \(; step < \d+; step \+= [14]\) \{\n(.*?)\n\1\}", main, re.DOTALL)
    return set(re.findall(r"(load4?_\w+)\(", loop[1]))


@pytest.mark.once
def test_loads_are_quads() -> None:
    x, grad, mean, w = torch.randn(51, 768), torch.randn(51, 768), torch.randn(51), torch.randn(768)
    (main,) = texts(weight_gradient, grad, x, mean, w)
    assert loads_of_steps(main) == {"load4_in_ptr0", "load4_in_ptr1", "load_in_ptr2"}
    assert len(re.findall(r"load4_in_ptr3\(", main)) == 1  # the weight, which is needed twice
    assert ("line" in main) != launch.target()["software"]


SHAPES = [(2, 16), (15, 64), (40, 33), (100, 36), (33, 260), (200, 20)]


@pytest.mark.parametrize("shape", with_once(SHAPES, (40, 33), (33, 260)), ids=str)
def test_shapes(shape: tuple[int, int]) -> None:
    rows, columns = shape
    x = torch.randn(shape)
    check(all_of, x, rtol=1e-5, atol=1e-4)
    check(lambda x: (x.var(0), x.std(0)), x, rtol=1e-4, atol=1e-5)
    check(lambda x: torch.softmax(x, 0), x, launches=1, rtol=1e-4, atol=1e-6)
    check(weight_gradient, torch.randn(shape), x, torch.randn(rows), torch.randn(columns), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int8, torch.int32, torch.bool], ids=str)
def test_dtypes(dtype: torch.dtype) -> None:
    x = torch.randint(0, 5, (50, 68)).to(dtype)
    check(lambda x: (x.sum(0), x.amax(0), x.any(0)), x)
    if dtype.is_floating_point:
        check(lambda x: torch.softmax(x, 0) + x[0], x)


@pytest.mark.once
def test_int64_is_exact() -> None:
    x = torch.randint(-(2**60), 2**60, (37, 36))
    check(lambda x: (x.sum(0), x.amax(0), x.argmin(0), x.prod(0), x - x.amin(0)), x)


@pytest.mark.once
def test_nan_wins() -> None:
    x = torch.randn(40, 64)
    x[7, 1] = x[39, 4] = x[2, 4] = float("nan")
    x[:, 2] = float("-inf")
    check(lambda x: (x.amax(0), x.amin(0), x.argmax(0), x.argmin(0), x.max(0), x.sum(0)), x)


def test_first_of_equals_wins() -> None:
    check(lambda x: (x.argmax(0), x.argmin(0), x.max(0), x.min(0)), torch.randint(0, 3, (50, 64)).float())


@pytest.mark.once
def test_variance_of_numbers_far_from_zero() -> None:
    x = (torch.randn(200, 64, dtype=torch.float64) * 1e-2 + 1e5).float()
    got = compiled(lambda x: x.var(0))(to_device(x))
    torch.testing.assert_close(got.cpu().double(), x.double().var(0), rtol=1e-3, atol=0)


@pytest.mark.once
def test_few_columns_of_many_rows() -> None:
    """Parts of the rows, joined by a second kernel; 10007 is a prime, so that the last part is shorter."""
    for rows in (8192, 10007):
        x = torch.randn(rows, 32)
        check(lambda x: (x.sum(0), x.square().mean(0)), x, rtol=1e-4, atol=1e-2)
        check(lambda x: x.var(0), x, rtol=1e-4, atol=1e-5)


def test_middle_dimensions() -> None:
    x = torch.randn(3, 40, 5, 16)
    check(lambda x: (x.sum((0, 1)), x.amax(1), x.mean((1, 2)), x.var((0, 2))), x, rtol=1e-4, atol=1e-5)
    check(lambda x: F.batch_norm(x, None, None, training=True), torch.randn(4, 20, 4, 4), rtol=1e-4, atol=1e-5)


def test_views() -> None:
    """Columns that begin within a quad, every second column, rows that are broadcast, masked loads."""
    x = torch.randn(40 * 36 + 1)
    check(lambda x: torch.softmax(x[1:].view(40, 36), 0), x, rtol=1e-4, atol=1e-6)
    check(lambda x: x[:, ::2].sum(0), torch.randn(40, 72), rtol=1e-5, atol=1e-4)
    check(lambda x, y: (x + y[:, None] * x[0]).sum(0), torch.randn(40, 36), torch.randn(40), rtol=1e-5, atol=1e-4)
    check(lambda x: F.pad(x, (0, 0, 2, 3)).exp().sum(0), torch.randn(40, 36), rtol=1e-5, atol=1e-4)
    check(lambda x: torch.cat((x, x * 2), 1).amax(0), torch.randn(40, 36))
    check(lambda x, i: x.index_select(0, i).sum(0), torch.randn(40, 36), torch.randint(0, 40, (50,)), rtol=1e-5,
          atol=1e-4)  # fmt: skip


def test_what_is_stored_on_the_way() -> None:
    def centred(x: Tensor) -> tuple[Tensor, Tensor]:
        x.sub_(x.mean(0))
        return x * 2, x.square().sum(0).sqrt() + 1

    x = torch.randn(64, 100)
    given = x.clone().to("webgpu")
    expected = centred(x)
    for got, wanted in zip(compiled(centred)(given), expected, strict=True):
        torch.testing.assert_close(got.cpu(), wanted, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(given.cpu(), x, rtol=1e-4, atol=1e-5)


def test_numbers_of_rows_and_columns_that_change() -> None:
    call = compiled(lambda x: (x.sum(0), torch.softmax(x, 0)), dynamic=True)
    for shape in ((40, 36), (33, 64), (70, 35), (3, 100)):
        x = torch.randn(shape)
        for got, wanted in zip(call(x.to("webgpu")), (x.sum(0), torch.softmax(x, 0)), strict=True):
            torch.testing.assert_close(got.cpu(), wanted, rtol=1e-4, atol=1e-5)
    by_rows = compiled(lambda x: x.sum(0))
    for rows in (20, 41, 90):
        x = torch.randn(rows, 64)
        given = x.to("webgpu")
        torch._dynamo.mark_dynamic(given, 0)
        torch.testing.assert_close(by_rows(given).cpu(), x.sum(0), rtol=1e-4, atol=1e-4)
