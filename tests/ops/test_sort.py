"""Sorting and what rests on it: every dtype, NaN and zeros in their places, stable in lines of any length."""

from __future__ import annotations

import pytest
import torch

from tests.support import DTYPES, assert_same, assert_same_error, make, name_of, outcome, run_on_device, to_device

SORTABLE = tuple(dtype for dtype in DTYPES if dtype != torch.bool)


def check_sort(tensor: torch.Tensor, dim: int, descending: bool) -> None:
    message = f"sort {tuple(tensor.shape)} {tensor.dtype} {dim} {descending}"
    expected = torch.sort(tensor, dim=dim, descending=descending, stable=True)
    actual = run_on_device(torch.sort, to_device(tensor), dim=dim, descending=descending, stable=True)
    assert_same(tuple(actual), tuple(expected), message, exact=True)


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_sort(dtype: torch.dtype) -> None:
    cube = make((5, 7, 6), dtype, 1)
    for descending in (False, True):
        for tensor in (cube, cube.transpose(0, 2), cube[:, 1::2]):
            for dim in range(3):
                check_sort(tensor, dim, descending)
        check_sort(make((3, 2000), dtype, 1), 1, descending)
        check_sort(make((2000, 3), dtype, 0), 0, descending)
    for shape in ((), (0,), (1,), (0, 3), (3, 0)):
        check_sort(make(shape, dtype), -1, False)


@pytest.mark.parametrize("size", (33, 513, 1024, 5000, 150_001))
def test_sizes(size: int) -> None:
    check_sort(make((size,), torch.float32), 0, False)
    check_sort(make((size,), torch.int64, 1), 0, True)


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_rows_in_one_launch(dtype: torch.dtype) -> None:
    """Rows that an invocation or a workgroup sorts; many of their elements are equal."""
    for length in (32, 33, 100, 1000):
        tensor = make((3, length, 2), dtype, 1, None if dtype == torch.bool else (0, 40))
        if dtype.is_floating_point:
            tensor = tensor.round()
            tensor[0, ::7] = float("nan")
            tensor[1, ::5] = -0.0
        for descending in (False, True):
            expected = tensor.sort(dim=1, descending=descending, stable=True)
            moved = to_device(tensor)
            ways = {"dim": 1, "descending": descending, "stable": True}
            actual = run_on_device(torch.sort, moved, dispatches=1, **ways)
            assert_same(tuple(actual), tuple(expected), f"{length} {descending}", exact=True)


@pytest.mark.parametrize("dtype", (torch.float32, torch.int64), ids=name_of)
def test_rounds_of_topk(dtype: torch.dtype) -> None:
    """The first ones of blocks, and of those: equal ones in the order of the line."""
    for length, count in ((1025, 3), (5003, 64), (49152, 50)):
        tensor = torch.arange(length).mul(7919).remainder(length // 2).to(dtype).repeat(2, 1)
        tensor[1] = tensor[1].flip(0)
        values, indices = tensor.sort(dim=1, descending=True, stable=True)
        actual = run_on_device(torch.topk, to_device(tensor), count)
        assert_same(tuple(actual), (values[:, :count].contiguous(), indices[:, :count].contiguous()), exact=True)


def test_forms() -> None:
    tensor = make((4, 9), torch.float32)
    values, indices = torch.empty(9, 4, device="webgpu").t(), torch.empty(0, dtype=torch.int64, device="webgpu")
    run_on_device(torch.sort, to_device(tensor), stable=True, out=(values, indices))
    assert_same((values, indices), tuple(torch.sort(tensor, stable=True)), "out", exact=True, strides=False)
    ordered = {"dim": 0, "stable": True}
    assert_same(run_on_device(torch.argsort, to_device(tensor), **ordered), torch.argsort(tensor, **ordered))
    assert_same(run_on_device(torch.msort, to_device(tensor)), torch.msort(tensor), exact=True)
    for function in (lambda x: torch.sort(x, dim=3), lambda x: torch.topk(x, 10), lambda x: torch.topk(x > 0, 1),
                     lambda x: torch.kthvalue(x, 10), lambda x: torch.kthvalue(x[:, :0], 1),
                     lambda x: torch.kthvalue(x > 0, 1)):  # fmt: skip
        assert_same_error(outcome(function, to_device(tensor))[1], outcome(function, tensor)[1])


def check_order(actual: tuple, expected: tuple, tensor: torch.Tensor, dim: int, message: str) -> None:
    """The CPU's values; of equal ones any index will do."""
    assert_same(actual[0], expected[0], message, exact=tensor.is_floating_point() and bool((tensor != 0).all()))
    assert actual[1].dtype == torch.int64 and actual[1].shape == expected[1].shape
    if tensor.dim():
        index = actual[1].cpu()
        torch.testing.assert_close(tensor.gather(dim, index), actual[0].cpu(), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", SORTABLE, ids=name_of)
def test_topk_and_kthvalue(dtype: torch.dtype) -> None:
    for shape, dim in (((6, 7, 5), 1), ((6, 7, 5), 2), ((3, 700), 1), ((900, 2), 0), ((), 0)):
        tensor = make(shape, dtype, 1)
        moved = to_device(tensor)
        for k in {1, min(5, tensor.size(dim) if shape else 1)}:
            for largest in (True, False):
                expected = torch.topk(tensor, k, dim, largest)
                actual = run_on_device(torch.topk, moved, k, dim, largest)
                check_order(actual, expected, tensor, dim, f"topk {shape} {dim} {k} {largest}")
            expected = torch.kthvalue(tensor, k, dim, keepdim=True)
            actual = run_on_device(torch.kthvalue, moved, k, dim, keepdim=True)
            check_order(actual, expected, tensor, dim, f"kthvalue {shape} {dim} {k}")
            actual = run_on_device(torch.kthvalue, moved, k, dim)
            assert_same(actual[0], torch.kthvalue(tensor, k, dim)[0], "kthvalue")


def test_topk_of_a_number() -> None:
    for k in (0, 1):
        for dtype in (torch.float32, torch.int64, torch.uint8):
            x = torch.tensor(3, dtype=dtype)
            assert_same(tuple(torch.topk(to_device(x), k)), tuple(torch.topk(x, k)), f"{k}")


def test_topk_of_many() -> None:
    tensor = torch.randn(300_000, generator=torch.Generator().manual_seed(0))
    tensor[::1000] = float("nan")
    for k in (1, 10, 64, 65, 5000):
        check_order(run_on_device(torch.topk, to_device(tensor), k), torch.topk(tensor, k), tensor, 0, f"topk {k}")


# Its calls wait: the shape of the result depends on values.
UNIQUE = {"return_inverse": True, "return_counts": True}


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_unique(dtype: torch.dtype) -> None:
    small = make((6, 4, 5), dtype, 1, None if dtype == torch.bool else (0, 3)).round() if dtype.is_floating_point else (
        make((6, 4, 5), dtype, 1, None if dtype == torch.bool else (0, 3)))  # fmt: skip
    for tensor in (small, small.transpose(0, 2), small[:, :, :1], small[:0], small[0, 0, 0], make((40,), dtype)):
        moved = to_device(tensor)
        for function in (torch.unique, torch.unique_consecutive):
            assert_same(
                run_on_device(function, moved, waits=None), function(tensor), f"{function.__name__} {tensor.shape}"
            )
            assert_same(
                run_on_device(function, moved, waits=None, **UNIQUE), function(tensor, **UNIQUE), function.__name__
            )
    for dim in range(3):
        for function in (torch.unique, torch.unique_consecutive):
            actual = run_on_device(function, to_device(small), dim=dim, waits=None, **UNIQUE)
            assert_same(actual, function(small, dim=dim, **UNIQUE), f"{function.__name__} dim {dim}", strides=False)


def test_unique_of_many() -> None:
    tensor = make((100_000,), torch.int64, 0, (-300, 300))
    assert_same(run_on_device(torch.unique, to_device(tensor), waits=None, **UNIQUE), torch.unique(tensor, **UNIQUE))
    rows = make((3000, 3), torch.int32, 0, (0, 5))
    assert_same(
        run_on_device(torch.unique, to_device(rows), dim=0, waits=None, **UNIQUE), torch.unique(rows, dim=0, **UNIQUE)
    )
