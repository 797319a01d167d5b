"""Operands that differ in dtype, shape or device: promotion, broadcasting, Python numbers, 0-d tensors of the CPU."""

import operator
from collections.abc import Callable

import pytest
import torch

from tests.support import DEVICE, DTYPES, assert_same, falls_back, make, name_of, run_on_device, to_device

PAIRS = {"add": torch.add, "mul": torch.mul, "lt": torch.lt}
NUMBERS = {"add": operator.add, "mul": operator.mul, "div": operator.truediv, "lt": operator.lt, "eq": operator.eq}
# One rounding of a quotient: WGSL allows 2.5 units of float32, one of the result's dtype.
DIVISION = {torch.float32: 2.5 * 2**-23, torch.float16: 2**-10, torch.bfloat16: 2**-7}


def check(function: Callable[..., torch.Tensor], *args: object, message: str) -> None:
    expected = function(*args)
    division = function is operator.truediv and expected.is_floating_point()
    rtol = DIVISION[expected.dtype] if division else 0
    actual = run_on_device(function, *(to_device(x) if isinstance(x, torch.Tensor) and x.dim() else x for x in args))
    assert_same(actual, expected, message, exact=not division, rtol=rtol, atol=0, arithmetic=True)


@pytest.mark.parametrize("left", DTYPES, ids=name_of)
@pytest.mark.parametrize("name", PAIRS)
def test_every_pair_of_dtypes(name: str, left: torch.dtype) -> None:
    for right in DTYPES:
        check(PAIRS[name], make((66,), left, 0), make((66,), right, 1), message=f"{left}, {right}")


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_where_promotes_its_branches(dtype: torch.dtype) -> None:
    condition = make((66,), torch.bool)
    for other in DTYPES:
        check(torch.where, condition, make((66,), dtype, 0), make((66,), other, 1), message=str(other))


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_dimensionless_tensors_do_not_promote_within_a_kind(dtype: torch.dtype) -> None:
    x = make((7,), dtype, 0)
    for other in DTYPES:
        zero_d = torch.tensor(1, dtype=other)
        actual = run_on_device(torch.add, to_device(x), zero_d.to(DEVICE))
        assert_same(actual, torch.add(x, zero_d), str(other), exact=True)
        actual = run_on_device(torch.add, zero_d.to(DEVICE), to_device(x))
        assert_same(actual, torch.add(zero_d, x), str(other), exact=True)


@pytest.mark.parametrize("number", (3, -2, 2.5, True, 0, float("inf"), float("nan"), 1e30, 2**40), ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_python_numbers_on_either_side(dtype: torch.dtype, number: complex) -> None:
    x = make((66,), dtype, 0)
    for name, function in NUMBERS.items():
        try:
            function(x, number), function(number, x)
        except RuntimeError as error:  # a number that the dtype does not hold
            with pytest.raises(type(error)):
                function(to_device(x), number), function(number, to_device(x))
            continue
        check(function, x, number, message=f"{name} {number} right")
        check(function, number, x, message=f"{name} {number} left")


@pytest.mark.parametrize("scalar_dtype", (*DTYPES, torch.float64), ids=name_of)
@pytest.mark.parametrize("dtype", (torch.float32, torch.float16, torch.int64, torch.uint8, torch.bool), ids=name_of)
def test_cpu_scalars_on_either_side(dtype: torch.dtype, scalar_dtype: torch.dtype) -> None:
    x = make((66,), dtype, 0)
    for value in (3, 200, -1.3):
        scalar = torch.tensor(value).to(scalar_dtype)
        for name, function in NUMBERS.items():
            expected = function(x, scalar)
            if expected.dtype == torch.float64:  # which the CPU computes
                with falls_back():
                    assert_same(function(to_device(x), scalar), expected, f"{name} {scalar!r}")
                continue
            check(function, x, scalar, message=f"{name} {scalar!r} right")
            check(function, scalar, x, message=f"{name} {scalar!r} left")


def test_cpu_scalars_in_where_and_bounds() -> None:
    condition, x, half = make((66,), torch.bool), make((66,), torch.float32), torch.tensor(0.5)
    check(torch.where, condition, x, half, message="second branch")
    check(torch.where, condition, half, x, message="first branch")
    check(torch.where, condition, half, torch.tensor(2), message="both branches")
    check(torch.maximum, x, half, message="maximum")
    check(torch.where, condition, x, 2, message="number")
    check(torch.where, condition, 2, 3.5, message="numbers")


def test_a_cpu_tensor_with_dimensions_is_refused() -> None:
    x = torch.ones(3, device=DEVICE)
    for function in (torch.add, torch.mul, torch.lt, torch.maximum):
        for args in ((x, torch.ones(3)), (torch.ones(3), x), (x, torch.ones(1)), (torch.ones(1), x)):
            with pytest.raises(RuntimeError, match=r"Expected all tensors to be on the same device"):
                function(*args)


SHAPES = (
    ((5, 1), (1, 7)),
    ((5, 7), (7,)),
    ((7,), (5, 7)),
    ((2, 1, 3, 1), (4, 1, 6)),
    ((1,), (2, 3, 4)),
    ((), (3, 4)),
    ((0,), (3, 1)),
    ((4, 0), (1,)),
    ((1, 1, 1), (1,)),
    ((2, 3, 1, 2, 1, 2), (1, 1, 4, 1, 3, 2)),
    ((2, 1, 2, 1, 2, 1, 2, 1, 3), (1, 2, 1, 2, 1, 2, 1, 3, 1)),
)


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_broadcasting(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    for dtype in (torch.float32, torch.int64, torch.int8, torch.float16):
        left, right = make(shapes[0], dtype, 0), make(shapes[1], dtype, 1)
        actual = run_on_device(torch.add, to_device(left), to_device(right))
        assert_same(actual, left + right, str(dtype), exact=True)
        condition = left > right
        actual = run_on_device(torch.where, to_device(condition), to_device(left), to_device(right))
        assert_same(actual, torch.where(condition, left, right), str(dtype), exact=True)
