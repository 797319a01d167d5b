"""Sorts of long rows and top-k as GPUs get them. Run by test_gpu_kernels.py."""

from __future__ import annotations

import pytest
import torch

from tests.ops.gpu_rows import labels
from tests.support import DEVICE, assert_same, make, name_of, run_on_device, to_device

BLOCK, LARGE_BLOCK = 3 * 256, 13 * 256  # elements that a workgroup of the radix sort holds: of short lines, and of long
# One dtype for each kind of key, and one way each: software adapters take seconds to compile each of these kernels.
KEYS = (torch.float32, torch.bfloat16, torch.int64, torch.int8, torch.uint8)
WAYS = [(dtype, i % 2 == 1) for i, dtype in enumerate(KEYS)]


def some(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Few different values, all special ones of floats among them."""
    x = make(shape, dtype, 1, None if dtype == torch.bool else (-40, 40))
    if dtype.is_floating_point:
        x = x.round()
        flat = x.view(-1)
        flat[::7], flat[3::11], flat[5::13], flat[6::17] = float("nan"), -0.0, float("inf"), -float("inf")
    return x


def check_sort(x: torch.Tensor, dim: int = -1, descending: bool = False) -> None:
    expected = torch.sort(x, dim=dim, descending=descending, stable=True)
    actual = run_on_device(torch.sort, to_device(x), dim=dim, descending=descending, stable=True)
    assert_same(
        tuple(actual), tuple(expected), f"{tuple(x.shape)} {x.dtype} {dim} {descending}", exact=True, strides=False
    )


@pytest.mark.parametrize(("dtype", "descending"), [*WAYS, (torch.float32, True)], ids=str)
def test_sort(dtype: torch.dtype, descending: bool) -> None:
    check_sort(some((2, 2 * BLOCK + 1), dtype), 1, descending)
    check_sort(some((1025, 3), dtype), 0, descending)
    check_sort(some((2, 3001, 2), dtype)[:, 1::2], 1, descending)
    check_sort(make((7001,), dtype, 1), 0, descending)


def test_lengths() -> None:
    for length in (1025, 2 * BLOCK - 1, 2 * BLOCK, 2 * BLOCK + 1, 10_007):
        check_sort(torch.randn(3, length, generator=torch.Generator().manual_seed(length)))
    for rows, length in ((86, LARGE_BLOCK - 1), (85, LARGE_BLOCK), (83, LARGE_BLOCK + 1), (3, 100_003), (1, 860_000)):
        check_sort(torch.randn(rows, length, generator=torch.Generator().manual_seed(length)))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64], ids=name_of)
def test_digits_that_are_the_same_everywhere(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    most = torch.iinfo(dtype).max
    for low, high in ((5, 6), (0, 200), (-3, 3), (1 << 20, (1 << 20) + 70_000), (most - 500, most), (-most, most)):
        check_sort(torch.randint(low, high, (2 * BLOCK + 77,), dtype=dtype, generator=generator))
    check_sort(torch.tensor([0, 1, 1 << 24, 3 << 8], dtype=dtype)[torch.randint(0, 4, (5000,), generator=generator)])
    if dtype == torch.int64:
        check_sort((torch.randint(-4, 4, (5000,), generator=generator) << 40) + 7)


def test_what_rests_on_it() -> None:
    x = torch.randint(-300, 300, (20_000,), generator=torch.Generator().manual_seed(0))
    counted = {"return_inverse": True, "return_counts": True}
    for dtype in (torch.int64, torch.float32):
        y = x.to(dtype)
        assert_same(run_on_device(torch.unique, to_device(y), waits=None, **counted), torch.unique(y, **counted))
    y = x.float().view(4, 5000)
    assert_same(run_on_device(torch.argsort, to_device(y), stable=True), torch.argsort(y, stable=True))
    for k in (1, 700, 1024, 1025, 4000, 5000):
        actual = run_on_device(torch.kthvalue, to_device(y), k, 1)
        assert_same(actual[0], torch.kthvalue(y, k, 1)[0])
    out = torch.empty(5000, 4, device=DEVICE).t(), torch.empty(0, dtype=torch.int64, device=DEVICE)
    run_on_device(torch.sort, to_device(y), stable=True, out=out)
    assert_same(out, tuple(torch.sort(y, stable=True)), strides=False)
    for empty in (torch.empty(0, 2000), torch.empty(2000, 0)):
        for dim in (0, 1):
            assert tuple(to_device(empty).sort(dim=dim)[1].shape) == tuple(empty.shape)


def first_of(x: torch.Tensor, k: int, largest: bool, dim: int = -1) -> tuple[torch.Tensor, torch.Tensor]:
    values, indices = x.sort(dim=dim, descending=largest, stable=True)
    return values.narrow(dim, 0, k), indices.narrow(dim, 0, k)


@pytest.mark.parametrize(("dtype", "largest"), WAYS, ids=str)
def test_topk(dtype: torch.dtype, largest: bool) -> None:
    for shape, k, dim in (((2, 1025), 3, 1), ((2, 20_001), 50, 1), ((1500, 3), 500, 0)):
        for x in (some(shape, dtype), make(shape, dtype, 1)):
            actual = run_on_device(torch.topk, to_device(x), k, dim, largest)
            assert_same(tuple(actual), first_of(x, k, largest, dim), f"{shape} {dtype}", exact=True, strides=False)


def test_topk_of_many() -> None:
    x = torch.randn(3, 70_001, generator=torch.Generator().manual_seed(0))
    for k in (1, 50, 1000, 1024, 1025):
        actual = run_on_device(torch.topk, to_device(x), k)
        assert_same(tuple(actual), first_of(x, k, True), f"{k}", exact=True, strides=False)


def test_topk_of_equals() -> None:
    """Of equal elements the first ones, also where they are more than a round can take."""
    for x in (torch.zeros(4, 50_000), torch.full((4, 50_000), float("nan")),
              torch.arange(50_000).remainder(3).float().repeat(4, 1)):  # fmt: skip
        for k in (1, 64, 1024):
            actual = run_on_device(torch.topk, to_device(x), k)
            assert_same(tuple(actual), first_of(x, k, True), f"{k}", exact=True, strides=False)


def test_which_kernels_they_are() -> None:
    x = torch.randn(5, 20_000, device=DEVICE)
    names = [label.partition(" ")[2][1:].partition(" ")[0] for label in labels(lambda: x.sort())]
    assert names == ["sort_count", "sort_offsets", "sort_move"] * 4
    names = [label.partition(" ")[2][1:].partition(" ")[0] for label in labels(lambda: x.topk(50))]
    assert names == ["topk_select"] * 2 + ["sort_group"]


def test_out_may_be_the_input() -> None:
    x = torch.randint(0, 200, (5000,), dtype=torch.int32, generator=torch.Generator().manual_seed(0))
    expected, found = torch.sort(x, stable=True), x.to(DEVICE)
    places = torch.empty(5000, dtype=torch.int64, device=DEVICE)
    torch.sort(found, stable=True, dim=0, out=(found, places))
    assert_same((found, places), tuple(expected), exact=True)
