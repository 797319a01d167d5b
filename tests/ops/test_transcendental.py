"""Powers, logarithms, circular and hyperbolic functions: as near to the CPU as the table says, and special values."""

import math

import pytest
import torch

from tests.ops.table import Op, check_dtypes
from tests.support import assert_same, run_on_device, to_device, ulps

DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.uint8, torch.bool)

OPS = (
    Op("exp2", torch.exp2, 1, 3),
    Op("expm1", torch.expm1, 1, 6),
    Op("log2", torch.log2, 1, 4),
    Op("log10", torch.log10, 1, 4),
    Op("log1p", torch.log1p, 1, 4),
    Op("sin", torch.sin, 1, 4),
    Op("cos", torch.cos, 1, 4),
    Op("tan", torch.tan, 1, 8),
    Op("sinc", torch.sinc, 1, 64, (-1e4, 1e4)),
    Op("asin", torch.asin, 1, 4),
    Op("acos", torch.acos, 1, 4),
    Op("atan", torch.atan, 1, 4),
    Op("sinh", torch.sinh, 1, 6),
    Op("cosh", torch.cosh, 1, 6),
    Op("asinh", torch.asinh, 1, 6),
    Op("acosh", torch.acosh, 1, 6),
    Op("atanh", torch.atanh, 1, 6),
    Op("atan2", torch.atan2, 2, 5),
    Op("hypot", torch.hypot, 2, 5),
    Op("erf", torch.erf, 1, 16),
    Op("erfc", torch.erfc, 1, 16),
    Op("erfinv", torch.erfinv, 1, 8),
    Op("logaddexp", torch.logaddexp, 2, 6),
    Op("logaddexp2", torch.logaddexp2, 2, 6, (1, 9)),
    Op("xlogy", torch.xlogy, 2, 6),
    Op("xlogy_scalar", lambda a: torch.xlogy(a, 2), 1, 6),
    Op("xlogy_scalar_first", lambda a: torch.xlogy(2, a), 1, 6),
)


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_function(op: Op) -> None:
    check_dtypes(op, DTYPES)


@pytest.mark.parametrize("name", ("sin", "cos", "tan"))
def test_large_angles(name: str) -> None:
    x = torch.logspace(-3, 38, 5000).mul(torch.tensor([1.0, -1.0]).repeat(2500))
    actual = run_on_device(getattr(torch, name), to_device(x))
    expected = getattr(torch, name)(x.double()).float()
    assert_same(actual, expected, rtol=ulps(16, torch.float32), atol=1e-7)


def test_powers_stay_near_however_large() -> None:
    base = torch.logspace(-20, 20, 4000)
    exponent = torch.linspace(-86, 86, 4000).flip(0) / base.log().where(base != 1, torch.tensor(1.0))
    actual = run_on_device(torch.pow, to_device(base), to_device(exponent))
    expected = torch.pow(base.double(), exponent.double()).float()
    assert_same(actual, expected, rtol=ulps(6, torch.float32), atol=0)


def test_frexp() -> None:
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        x = torch.tensor([0.0, -0.0, 1.0, -1.5, 0.1, 1e4, -6e-5, math.inf, -math.inf, math.nan], dtype=dtype)
        actual, expected = run_on_device(torch.frexp, to_device(x)), torch.frexp(x)
        assert_same(actual.mantissa, expected.mantissa, exact=True)
        finite = x.isfinite()  # the CPU leaves the others' exponents open
        assert torch.equal(actual.exponent.cpu()[finite], expected.exponent[finite])


def test_real_and_complex_parts_of_a_real() -> None:
    x = torch.tensor([1.0, -2.0, 0.0, -0.0, math.nan])
    assert_same(run_on_device(torch.angle, to_device(x)), torch.angle(x))
    assert_same(run_on_device(torch.angle, to_device(x[:2].long())), torch.angle(x[:2].long()))
