"""Distances between rows, cross products."""

from __future__ import annotations

import pytest
import torch

from tests.support import assert_same, assert_same_error, make, outcome, run_on_device, to_device

EXPONENTS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, float("inf"))


def compare(function, tensors: list[torch.Tensor], message: str) -> None:
    here = [x.clone().requires_grad_() for x in tensors]
    there = [to_device(x).requires_grad_() for x in tensors]
    expected, actual = function(*here), run_on_device(function, *there)
    assert_same(actual, expected, message, rtol=1e-5, atol=1e-5)
    weights = make(tuple(expected.shape), torch.float32, 3, (-1, 1))
    expected.backward(weights)
    run_on_device(actual.backward, to_device(weights))
    for index, (one, other) in enumerate(zip(there, here, strict=True)):
        assert_same(one.grad, other.grad, f"{message}: gradient {index}", rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("p", EXPONENTS)
def test_cdist_and_pdist(p: float) -> None:
    a, b = make((2, 4, 5), torch.float32, 0, (-1, 1)), make((3, 5), torch.float32, 1, (-1, 1))
    b[0] = a[0, 0]
    compare(lambda x, y: torch.cdist(x, y, p, compute_mode="donot_use_mm_for_euclid_dist"), [a, b], f"cdist {p}")
    compare(lambda x: torch.pdist(x, p), [make((5, 4), torch.float32, 2, (-1, 1))], f"pdist {p}")


def test_empty_and_refused() -> None:
    for one, other in (((0, 3), (2, 3)), ((2, 0), (3, 0)), ((2, 3), (0, 3))):
        a, b = torch.rand(one), torch.rand(other)
        assert_same(
            run_on_device(torch.cdist, *to_device((a, b)), dispatches=None), torch.cdist(a, b), f"{one} {other}"
        )
    assert_same(run_on_device(torch.pdist, to_device(torch.rand(1, 3))), torch.pdist(torch.rand(1, 3)))
    for args in ((torch.ones(2, 2, dtype=torch.int64),) * 2, (torch.rand(2, 3), torch.rand(2, 4))):
        assert_same_error(outcome(torch.cdist, *to_device(args))[1], outcome(torch.cdist, *args)[1])


@pytest.mark.parametrize("dtype", (torch.float32, torch.float16, torch.int64, torch.int8), ids=str)
def test_cross(dtype: torch.dtype) -> None:
    a, b = make((4, 3, 5), dtype, 0, (-9, 9)), make((4, 3, 5), dtype, 1, (-9, 9))
    # the CPU rounds each product to float16
    close = {"rtol": 0, "atol": 81 * 2**-10} if dtype == torch.float16 else {}
    for x, y, dim in ((a, b, 1), (a.transpose(0, 1), b.transpose(0, 1), 0), (a[:1], b, 1)):
        actual = run_on_device(torch.linalg.cross, *to_device((x, y)), dim=dim)
        assert_same(actual, torch.linalg.cross(x, y, dim=dim), f"cross {dim}", **close)
    out = to_device(a)
    run_on_device(torch.linalg.cross, out, to_device(b), dim=1, out=out)
    assert_same(out, torch.linalg.cross(a, b, dim=1), "out is an input", **close)
    assert_same_error(
        outcome(torch.linalg.cross, *to_device((a, b)), dim=0)[1], outcome(torch.linalg.cross, a, b, dim=0)[1]
    )
