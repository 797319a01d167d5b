"""Counting by value, reductions over segments."""

from __future__ import annotations

import pytest
import torch

from tests.support import (
    FLOATS,
    INTS,
    assert_same,
    assert_same_error,
    deterministic_algorithms,
    falls_back,
    make,
    name_of,
    outcome,
    run_on_device,
    to_device,
)


@pytest.mark.parametrize("dtype", INTS, ids=name_of)
def test_bincount(dtype: torch.dtype) -> None:
    tensor = make((500,), dtype, 0, (0, 40))
    weights = torch.rand(500)
    for args in ((tensor,), (tensor[::2], None, 100), (tensor, weights), (tensor[:0], None, 3)):
        # The result is as long as the largest value.
        actual = run_on_device(torch.bincount, *to_device(args), waits=None)
        assert_same(actual, torch.bincount(*args), f"bincount {args[1:]}")


def test_only_sums_of_weights_are_not_deterministic() -> None:
    tensor, weights = to_device((torch.tensor([1, 2, 1]), torch.ones(3)))
    with deterministic_algorithms():
        assert torch.bincount(tensor).tolist() == [0, 2, 1]
        for call in (
            lambda: torch.bincount(tensor, weights),
            lambda: torch.histogram(weights, 3, weight=weights),
        ):
            with pytest.raises(RuntimeError, match="histogram with weights does not have a deterministic"):
                call()
    assert torch.bincount(tensor, weights).tolist() == [0, 2, 1]


def test_bincount_refusals() -> None:
    for args in (([[1]],), ([-1],), ([1.0],), ([True],), ([1], [1.0, 2.0])):
        tensors = [torch.tensor(x) for x in args]
        assert_same_error(outcome(torch.bincount, *to_device(tensors))[1], outcome(torch.bincount, *tensors)[1])
    with falls_back():  # sums of integers are float64
        counts = torch.bincount(torch.tensor([1], device="webgpu"), torch.tensor([3], device="webgpu"))
    assert_same(counts, torch.bincount(torch.tensor([1]), torch.tensor([3])))


@pytest.mark.parametrize("dtype", FLOATS, ids=name_of)
def test_histc(dtype: torch.dtype) -> None:
    tensor = make((40, 25), dtype)
    for kwargs in ({"bins": 7, "min": -2, "max": 3}, {"min": -1, "max": 1}, {"bins": 1, "min": 0, "max": 2}):
        for one in (tensor, tensor[1::2, 3:], tensor[:0]):
            # where the edges are made is not this test's business
            before = torch.webgpu.set_fallback_mode("quiet")
            actual = torch.histc(to_device(one), **kwargs)
            torch.webgpu.set_fallback_mode(before)
            assert_same(actual, torch.histc(one, **kwargs), f"histc {one.shape} {kwargs}")


@pytest.mark.parametrize("dtype", FLOATS, ids=name_of)
def test_histc_between_the_ends_of_the_values(dtype: torch.dtype) -> None:
    tensor = make((40, 25), dtype, 0, (-3, 5))
    for one in (tensor, tensor[1::2, 3:], torch.full((3,), 2.5, dtype=dtype), tensor[:0]):
        for bounds in ((), (0, 0), (2, 2)):
            actual = run_on_device(torch.histc, to_device(one), 7, *bounds, waits=int(one.numel() > 0))
            assert_same(actual, torch.histc(one, 7, *bounds), f"histc {one.shape} {bounds}")


def test_histc_refusals() -> None:
    tensors = (torch.tensor([1.0, torch.inf]), torch.ones(2), torch.tensor([]))
    for tensor in tensors:
        for args in ((), (0,), (3, 2, 1), (3, 0, torch.inf)):
            refused = outcome(torch.histc, tensor, *args)[1]
            assert_same_error(outcome(torch.histc, to_device(tensor), *args)[1], refused, f"histc {tensor} {args}")
    for tensor in (torch.tensor([1.0, torch.nan]), torch.tensor([True])):
        assert isinstance(outcome(torch.histc, to_device(tensor))[1], RuntimeError)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8], ids=name_of)
def test_histc_of_integers(dtype: torch.dtype) -> None:
    """As on CUDA; the CPU refuses them."""
    tensor = torch.tensor([0, 1, 1, 3, 3, 3, 7], dtype=dtype)
    expected = torch.histc(tensor.float(), 4, 0, 3).to(dtype)
    assert_same(run_on_device(torch.histc, to_device(tensor), 4, 0, 3), expected)


def test_histogram_of_edges() -> None:
    tensor, weights = make((300,), torch.float32), torch.rand(300)
    edges = torch.tensor([-3.0, -1.0, 0.0, 0.5, 4.0])
    for kwargs in ({}, {"weight": weights}, {"weight": weights, "density": True}):
        actual = run_on_device(torch.histogram, to_device(tensor), to_device(edges), **to_device(kwargs))
        assert_same(
            tuple(actual), tuple(torch.histogram(tensor, edges, **kwargs)), f"{list(kwargs)}", rtol=1e-5, atol=0
        )
    points = torch.rand(200, 2)
    bins = [torch.tensor([0, 0.3, 1]), torch.tensor([0.2, 0.5, 0.9, 1])]
    actual = run_on_device(torch._histogramdd_from_bin_tensors, *to_device((points, bins)))
    assert_same(actual, torch._histogramdd_from_bin_tensors(points, bins), "two dimensions")


@pytest.mark.parametrize("reduce", ("sum", "mean", "max", "min", "prod"))
def test_segment_reduce(reduce: str) -> None:
    data = torch.rand(2, 9, 3, generator=torch.Generator().manual_seed(0)) - 0.5
    data[0, 2] = 0
    lengths = torch.tensor([[2, 3, 4], [5, 0, 4]])
    offsets = torch.tensor([[0, 2, 5, 9], [0, 5, 5, 9]])
    for kwargs in ({"lengths": lengths}, {"offsets": offsets}):
        for more in ({}, {"initial": 2.0}):
            call = dict(axis=1, unsafe=True, **more)
            one, other = data.clone().requires_grad_(), to_device(data).requires_grad_()
            expected = torch.segment_reduce(one, reduce, **kwargs, **call)
            actual = run_on_device(torch.segment_reduce, other, reduce, **to_device(kwargs), **call)
            assert_same(actual, expected, f"{reduce} {list(kwargs)} {more}")
            weights = torch.rand(expected.shape, generator=torch.Generator().manual_seed(1))
            expected.backward(weights)
            run_on_device(actual.backward, to_device(weights))
            assert_same(other.grad, one.grad, f"{reduce} gradient {list(kwargs)} {more}")
