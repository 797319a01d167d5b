"""Division with rounding, powers, shifts, logic and the rest of arithmetic, exact in all 64 bits of an int64."""

import math
from collections.abc import Callable

import pytest
import torch

from tests.ops.table import Op, check_dtypes
from tests.support import DEVICE, DTYPES, FLOATS, INTS, assert_same, make, name_of, outcome, run_on_device, to_device

OPS = (
    Op("rsub", lambda a, b: torch.rsub(a, b), 2),
    Op("rsub_alpha", lambda a, b: torch.rsub(a, b, alpha=2), 2, 1, (0, 100)),
    Op("fmod", torch.fmod, 2, domain=(1, 100)),
    Op("remainder", torch.remainder, 2, domain=(1, 100)),
    Op("div_floor", lambda a, b: torch.div(a, b, rounding_mode="floor"), 2, domain=(1, 100)),
    Op("div_trunc", lambda a, b: torch.div(a, b, rounding_mode="trunc"), 2, domain=(1, 100)),
    Op("div_none", lambda a, b: torch.div(a, b, rounding_mode=None), 2, 2.5),
    Op("floor_divide", torch.floor_divide, 2, domain=(1, 100)),
    Op("remainder_scalar", lambda a: torch.remainder(a, -7) if a.dtype != torch.uint8 else torch.remainder(a, 7), 1),
    Op("fmod_scalar", lambda a: torch.fmod(a, 7), 1),
    Op("scalar_remainder", lambda a: torch.remainder(100, a if a.dtype != torch.bool else a + 1), 1, domain=(1, 90)),
    Op("floor_divide_scalar", lambda a: torch.floor_divide(a, 7), 1),
    Op("reciprocal", torch.reciprocal, 1, 2.5),
    Op("square", torch.square, 1),
    Op("pow", torch.pow, 2, 6),
    Op("pow_0", lambda a: a**0, 1),
    Op("pow_1", lambda a: a**1, 1),
    Op("pow_3", lambda a: a**3, 1, 2),
    Op("pow_5", lambda a: a**5, 1, 6),
    Op("pow_negative", lambda a: a**-2, 1, 5),
    Op("pow_half", lambda a: a**0.5, 1, 4.5, (0, 1000)),
    Op("pow_fraction", lambda a: a**1.7, 1, 20),
    Op("scalar_pow", lambda a: 2**a, 1, 6),
    Op("one_pow", lambda a: 1**a, 1),
    Op("addcmul", lambda a, b, c: torch.addcmul(a, b, c, value=3), 3, 3, (0, 50)),
    Op("addcdiv", lambda a, b, c: torch.addcdiv(a, b, c, value=3), 3, 6, (1, 50)),
    Op("lerp", torch.lerp, 3, 4, (0, 1)),
    Op("lerp_scalar", lambda a, b: torch.lerp(a, b, 0.3), 2, 4, (0, 1)),
    Op("fmax", torch.fmax, 2, signed_zeros=False),
    Op("fmin", torch.fmin, 2, signed_zeros=False),
    Op("sign", torch.sign, 1),
    Op("sgn", torch.sgn, 1),
    Op("signbit", torch.signbit, 1),
    Op("copysign", torch.copysign, 2),
    Op("copysign_scalar", lambda a: torch.copysign(a, -0.0), 1),
    Op("heaviside", torch.heaviside, 2),
    Op("floor", torch.floor, 1),
    Op("ceil", torch.ceil, 1),
    Op("trunc", torch.trunc, 1),
    Op("frac", torch.frac, 1),
    Op("round", torch.round, 1),
    Op("round_decimals", lambda a: torch.round(a, decimals=2), 1, 2.5, (-100, 100)),
    Op("round_tens", lambda a: torch.round(a, decimals=-1), 1, 2.5, (-100, 100)),
    Op("gcd", torch.gcd, 2, domain=(-120, 120)),
    Op("lcm", torch.lcm, 2, domain=(-60, 60)),
    Op("isnan", torch.isnan, 1),
    Op("isinf", torch.isinf, 1),
    Op("isfinite", torch.isfinite, 1),
    Op("isposinf", torch.isposinf, 1),
    Op("isneginf", torch.isneginf, 1),
    Op("nan_to_num", torch.nan_to_num, 1),
    Op("nan_to_num_given", lambda a: torch.nan_to_num(a, 1.0, 2.0, -3.0), 1),
    Op("logical_and", torch.logical_and, 2),
    Op("logical_or", torch.logical_or, 2),
    Op("logical_xor", torch.logical_xor, 2),
    Op("logical_not", torch.logical_not, 1),
    Op("bitwise_and_scalar", lambda a: a & 5, 1),
    Op("scalar_bitwise_or", lambda a: torch.bitwise_or(5, a), 1),
    Op("left_shift", torch.bitwise_left_shift, 2),
    Op("right_shift", torch.bitwise_right_shift, 2),
    Op("lshift", lambda a: a << 3, 1),
    Op("rshift", lambda a: a >> 3, 1),
    Op("deg2rad", torch.deg2rad, 1, 1),
    Op("rad2deg", torch.rad2deg, 1, 1),
)


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_arithmetic(op: Op) -> None:
    check_dtypes(op, DTYPES)


WIDE = (1, -1, 2, 3, -7, 10**9 + 7, 2**31, 2**32, -(2**32) - 1, 2**53 + 1, 2**62, -(2**62) - 12345, 2**63 - 1)


@pytest.mark.parametrize("dtype", INTS, ids=name_of)
def test_common_factors_of_the_smallest_integer(dtype: torch.dtype) -> None:
    """Its magnitude is itself: the signs are what C makes of them. Where the CPU's divisor becomes -1, its quotient
    overflows and a signal ends the process: such pairs are left out."""
    for function, others in ((torch.gcd, (0, 1, 2, 6, 7, 12, 100, 127, 64)), (torch.lcm, (0, 2, 6, 12, 100, 64))):
        values = torch.tensor([torch.iinfo(dtype).min, *others], dtype=dtype)
        a, b = (x.contiguous() for x in torch.meshgrid(values, values, indexing="ij"))
        assert_same(run_on_device(function, *to_device((a, b))), function(a, b), function.__name__)


@pytest.mark.parametrize("name", ("fmod", "remainder", "floor_divide", "trunc_divide", "pow", "gcd"))
def test_integers_of_64_bits(name: str) -> None:
    functions: dict[str, Callable[..., torch.Tensor]] = {
        "trunc_divide": lambda a, b: torch.div(a, b, rounding_mode="trunc")
    }
    function = functions.get(name) or getattr(torch, name)
    values = torch.tensor(WIDE)
    left, right = (x.reshape(-1) for x in torch.meshgrid(values, values, indexing="ij"))
    right = right % 70 if name == "pow" else right
    actual = run_on_device(function, to_device(left), to_device(right))
    assert_same(actual, function(left, right), name)


@pytest.mark.parametrize("dtype", INTS, ids=name_of)
def test_division_by_zero_is_defined(dtype: torch.dtype) -> None:
    x, zero = make((8,), dtype, 1), torch.zeros(8, dtype=dtype)
    for function in (torch.floor_divide, lambda a, b: torch.div(a, b, rounding_mode="trunc")):
        actual = run_on_device(function, to_device(x), to_device(zero))
        assert_same(actual, torch.full_like(x, 255 if dtype == torch.uint8 else -1), "quotient")
    for function in (torch.fmod, torch.remainder):
        assert_same(run_on_device(function, to_device(x), to_device(zero)), x, "remainder")


def test_integers_to_negative_powers() -> None:
    base, exponent = torch.tensor([1, -1, -1, 2, -5]), torch.tensor([-3, -3, -4, -1, -2])
    assert_same(run_on_device(torch.pow, to_device(base), to_device(exponent)), torch.pow(base, exponent))
    error = outcome(torch.pow, to_device(base), -1)[1]
    assert str(error) == str(outcome(torch.pow, base, -1)[1])


@pytest.mark.parametrize("dtype", FLOATS, ids=name_of)
def test_nextafter(dtype: torch.dtype) -> None:
    values = torch.tensor([0.0, -0.0, 1.0, -1.0, 2.0, 3e38, math.inf, -math.inf, math.nan], dtype=dtype)
    left, right = (x.reshape(-1) for x in torch.meshgrid(values, values, indexing="ij"))
    assert_same(
        run_on_device(torch.nextafter, to_device(left), to_device(right)), torch.nextafter(left, right), exact=True
    )


INPLACE: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "pow_": lambda x: x.pow_(2),
    "pow_ tensor": lambda x: x.pow_(torch.full_like(x, 3)),
    "div_": lambda x: x.div_(3, rounding_mode="floor"),
    "floor_divide_": lambda x: x.floor_divide_(3),
    "remainder_": lambda x: x.remainder_(3),
    "sin_": lambda x: x.sin_(),
    "round_": lambda x: x.round_(decimals=1),
    "logical_not_": lambda x: x.logical_not_(),
    "lerp_": lambda x: x.lerp_(torch.ones_like(x), 0.25),
    "addcmul_": lambda x: x.addcmul_(x, x, value=2),
    "nan_to_num_": lambda x: x.nan_to_num_(),
    "clamp": lambda x: torch.nn.functional.hardtanh(x, inplace=True),
    "leaky_relu_": lambda x: torch.nn.functional.leaky_relu(x, inplace=True),
    "masked_fill_": lambda x: x.masked_fill_(x > 1, 7),
}


@pytest.mark.parametrize("name", INPLACE)
def test_in_place(name: str) -> None:
    for strided in (False, True):
        x = torch.linspace(-5, 5, 48).reshape(6, 8)
        x = x[:, ::2] if strided else x
        moved = to_device(x)
        result = run_on_device(INPLACE[name], moved)
        assert_same(result, INPLACE[name](x), name)
        assert_same(moved, x, name)


def test_shifts_in_place() -> None:
    x = torch.arange(1, 9)
    moved = to_device(x)
    moved <<= 3
    moved >>= to_device(torch.ones(8, dtype=torch.int64))
    assert_same(moved, x << 2)


# masked_fill_


@pytest.mark.parametrize("dtype", (*DTYPES, torch.complex64), ids=name_of)
def test_masked_fill(dtype: torch.dtype) -> None:
    x, mask = make((6, 11), torch.float32, 1, (0, 100)).to(dtype), make((11,), torch.bool)
    one = torch.tensor(1, dtype=dtype)
    for value in (1, one):
        assert_same(run_on_device(torch.masked_fill, to_device(x), to_device(mask), value), x.masked_fill(mask, value))
    if dtype != torch.complex64:
        moved = run_on_device(torch.masked_fill, to_device(x), to_device(mask), one.to(DEVICE))
        assert_same(moved, x.masked_fill(mask, one))


@pytest.mark.parametrize(
    "call",
    (
        lambda d: torch.zeros(3, device=d).masked_fill_(torch.ones(3, device=d), 1),
        lambda d: torch.zeros(3, device=d).masked_fill_(
            torch.ones(3, dtype=torch.bool, device=d), torch.ones(2, device=d)
        ),
        lambda d: torch.zeros(3, dtype=torch.uint8, device=d).masked_fill_(
            torch.ones(3, dtype=torch.bool, device=d), 300
        ),
    ),
)
def test_masked_fill_refuses(call: Callable[[str], torch.Tensor]) -> None:
    actual, expected = outcome(call, DEVICE)[1], outcome(call, "cpu")[1]
    assert type(actual) is type(expected)
    assert str(actual) == str(expected)
