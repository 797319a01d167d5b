"""Conversions between dtypes, exact to the last bit: rounding, ties, overflow, denormals, 64-bit integers."""

import pytest
import torch

from tests.support import (
    COMPLEX,
    DEVICE,
    DTYPES,
    FLOAT8,
    INTS,
    STORED,
    STORED_ONLY,
    UNSIGNED,
    assert_same,
    assert_same_bits,
    make,
    name_of,
    run_on_device,
    special_values,
    to_device,
)


def halves(dtype: torch.dtype) -> torch.Tensor:
    """Every pattern of 16 bits."""
    return torch.arange(-(2**15), 2**15).to(torch.int16).view(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_every_pair(dtype: torch.dtype) -> None:
    for other in DTYPES:
        # What a float beyond an integer's range becomes, C++ leaves open.
        safe = dtype.is_floating_point and not other.is_floating_point and other != torch.bool
        x = make((66,), dtype, 0, (0 if other == torch.uint8 else -100, 100) if safe else None)
        for name, layout in (("contiguous", x), ("strided", x[1::2]), ("2-d", x.view(6, 11).t())):
            actual = run_on_device(to_device(layout).to, other, dispatches=None if dtype == other else True)
            assert_same(actual, layout.to(other), f"{other} {name}", exact=True)


@pytest.mark.parametrize("dtype", (torch.float16, torch.bfloat16), ids=name_of)
def test_every_half_widens_and_comes_back(dtype: torch.dtype) -> None:
    x = halves(dtype)
    wide = run_on_device(x.to(DEVICE).to, torch.float32)
    assert_same(wide, x.float(), exact=True)
    assert_same(run_on_device(wide.to, dtype), x, exact=True)


@pytest.mark.parametrize("dtype", (torch.float16, torch.bfloat16), ids=name_of)
def test_rounding_around_every_half(dtype: torch.dtype) -> None:
    """Each value, the middle to its neighbour, and the floats on either side of that middle."""
    x = halves(dtype)
    x = x[x.isfinite()].float().sort().values
    middle = ((x[:-1].double() + x[1:].double()) / 2).float()
    ends = torch.tensor([65519.996, 65520.0, 65536.0, 1e30, 3.4e38, float("inf")])
    for name, values in {
        "middle": middle,
        "below": middle.nextafter(torch.tensor(-torch.inf)),
        "above": middle.nextafter(torch.tensor(torch.inf)),
        "ends": torch.cat([ends, -ends, torch.tensor([float("nan")])]),
    }.items():
        assert_same(run_on_device(values.to(DEVICE).to, dtype), values.to(dtype), name, exact=True)


def test_denormals_of_float32_become_halves() -> None:
    tiny = torch.arange(0, 2**23, 4099, dtype=torch.int32).view(torch.float32)
    for dtype in (torch.float16, torch.bfloat16):
        assert_same(tiny.to(DEVICE).to(dtype), tiny.to(dtype), str(dtype), exact=True)


def around(*powers: int) -> torch.Tensor:
    near = [2**power + delta for power in powers for delta in (-3, -2, -1, 0, 1, 2, 3)]
    ends = [2**63 - 1, -(2**63), -(2**63) + 1, 2**63 - 2**38, 2**63 - 2**39 - 1, 2**63 - 2**39, 2**63 - 2**39 + 1]
    return torch.tensor([*near, *(-x for x in near), *ends, 0, 1, -1])


def test_int64_to_float_rounds_once() -> None:
    x = torch.cat([around(24, 25, 31, 32, 33, 40, 52, 53, 54, 62), make((1000,), torch.int64)])
    middles = [(2**24 + k) * 2**s + 2 ** (s - 1) + d for k in (1, 2) for s in range(1, 38) for d in (-1, 0, 1)]
    middles = torch.tensor(middles)
    for values in (x, middles, -middles):
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            assert_same(run_on_device(values.to(DEVICE).to, dtype), values.to(dtype), str(dtype), exact=True)


@pytest.mark.parametrize("dtype", INTS, ids=name_of)
def test_float_to_integers_truncates(dtype: torch.dtype) -> None:
    limits = torch.iinfo(dtype)
    x = torch.tensor([0.0, -0.0, 0.5, -0.5, 0.99999994, 1.5, 2.5, 100.7, 1e-40, 126.999])
    x = torch.cat([x, -x]) if limits.min < 0 else torch.cat([x, -x[x < 1]])
    powers = torch.tensor([2.0**p for p in range(63) if 2**p <= limits.max])
    below = powers.nextafter(torch.tensor(0.0))
    x = torch.cat([x, powers, below, *([-powers, -below, torch.tensor([float(limits.min)])] if limits.min < 0 else [])])
    assert_same(run_on_device(x.to(DEVICE).to, dtype), x.to(dtype), exact=True)


def test_floats_out_of_range_give_the_smallest_int() -> None:
    """x86's answer, which is the CPU's for vectors and single values alike in these dtypes."""
    x = torch.tensor([float("nan"), float("inf"), float("-inf"), 1e30, -1e30, 2.0**63, -(2.0**63)])
    for dtype in (torch.int64, torch.int32):
        expected = torch.full((7,), torch.iinfo(dtype).min, dtype=dtype)
        assert_same(x.to(DEVICE).to(dtype), expected, str(dtype))


def test_nan_and_infinities_are_true() -> None:
    x = torch.tensor([float("nan"), float("inf"), -0.0, 0.0, 1e-45, -2.0])
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        assert_same(x.to(dtype).to(DEVICE).to(torch.bool), x.to(dtype).to(torch.bool), str(dtype))


def test_integers_wrap() -> None:
    for wide in INTS:
        for narrow in INTS:
            x = make((200,), wide)
            assert_same(x.to(DEVICE).to(narrow), x.to(narrow), f"{wide} -> {narrow}")


def is_float(dtype: torch.dtype) -> bool:
    return dtype.is_floating_point or dtype.is_complex


@pytest.mark.filterwarnings("ignore:Casting complex values")
@pytest.mark.parametrize("dtype", STORED_ONLY, ids=name_of)
def test_every_pair_with_dtypes_without_arithmetic(dtype: torch.dtype) -> None:
    """Both ways, of values that the target has: what C++ leaves open, a negative uint for one, is left out."""
    for number, other in enumerate(STORED):
        for source, target in ((dtype, other), (other, dtype)):
            if source == target or (source == other and other in STORED_ONLY):  # once each
                continue
            safe = is_float(source) and not is_float(target) and target != torch.bool
            signed = not (target in UNSIGNED or target == torch.uint8)
            x = make((66,), source, 0, (-100 if signed else 0, 100) if safe else None)
            layout = x if number % 2 else x[1::2]  # a kernel each
            actual = run_on_device(to_device(layout).to, target)
            assert_same(actual, layout.to(target), f"{source} -> {target}", exact=True)


def around_floats() -> torch.Tensor:
    """float64 where float32 rounds: each float of a few exponents, the middle to its neighbour, and beside both."""
    exponents = (-150, -149, -148, -140, -127, -126, -125, -1, 0, 1, 23, 24, 127)
    floats = [m * 2.0**e for e in exponents for m in (1, 1 + 2**-23, 1 + 2**-22, 1.5, 2 - 2**-23)]
    x = torch.tensor(floats, dtype=torch.float64)
    unit = torch.tensor([max(2.0 ** (e - 23), 2.0**-149) for e in exponents for _ in range(5)], dtype=torch.float64)
    x = torch.cat([x, x + unit / 2, x - unit / 2, x + unit / 4])
    inf = torch.tensor(torch.inf, dtype=torch.float64)
    x = torch.cat([x, x.nextafter(inf), x.nextafter(-inf), special_values(torch.float64, denormals=True)])
    return torch.cat([x, -x])


def test_float64_to_floats_rounds_to_nearest_even() -> None:
    x = around_floats()
    for dtype in (torch.float32, torch.float16, torch.bfloat16, *FLOAT8, *COMPLEX):
        assert_same(run_on_device(x.to(DEVICE).to, dtype), x.to(dtype), str(dtype), exact=True)


def test_float32_to_float64_keeps_every_value() -> None:
    x = torch.cat([special_values(torch.float32, denormals=True), make((1000,), torch.float32)])
    x = torch.cat([x, torch.arange(0, 2**23, 4099, dtype=torch.int32).view(torch.float32)])  # denormals
    assert_same(run_on_device(x.to(DEVICE).double), x.double(), exact=True)


def test_integers_to_float64_round_once() -> None:
    x = torch.cat([around(24, 31, 32, 52, 53, 54, 55, 62), make((1000,), torch.int64)])
    middles = [(2**53 + k) * 2**s + 2 ** (s - 1) + d for k in (1, 2) for s in range(1, 10) for d in (-1, 0, 1)]
    x = torch.cat([x, torch.tensor(middles), -torch.tensor(middles)])
    assert_same(run_on_device(x.to(DEVICE).double), x.double(), exact=True)
    for dtype in (torch.float64, torch.float32):
        above = x.view(torch.uint64)
        assert_same(run_on_device(above.to(DEVICE).to, dtype), above.to(dtype), f"uint64 -> {dtype}", exact=True)


@pytest.mark.parametrize("dtype", (*INTS, *UNSIGNED), ids=name_of)
def test_float64_to_integers_truncates(dtype: torch.dtype) -> None:
    limits = torch.iinfo(dtype)
    x = torch.tensor([0.0, -0.0, 0.5, 0.99999999999999, 1.5, 2.5, 100.7, 1e-310, 126.999], dtype=torch.float64)
    powers = torch.tensor([2.0**p for p in range(64) if 2**p <= limits.max], dtype=torch.float64)
    below = powers.nextafter(torch.zeros((), dtype=torch.float64))
    x = torch.cat([x, powers, below])
    if limits.min < 0:
        x = torch.cat([x, -x, torch.tensor([float(limits.min)], dtype=torch.float64)])
    assert_same(run_on_device(x.to(DEVICE).to, dtype), x.to(dtype), exact=True)


@pytest.mark.parametrize("dtype", FLOAT8, ids=name_of)
def test_every_float8_widens_and_comes_back(dtype: torch.dtype) -> None:
    x = torch.arange(256).to(torch.uint8).view(dtype)
    wide = run_on_device(x.to(DEVICE).float)
    assert_same(wide, x.float(), exact=True)
    assert_same_bits(run_on_device(wide.to, dtype), x.float().to(dtype), nan_payload=False)


@pytest.mark.parametrize("dtype", FLOAT8, ids=name_of)
def test_rounding_around_every_float8(dtype: torch.dtype) -> None:
    x = torch.arange(256).to(torch.uint8).view(dtype).float()
    x = x[x.isfinite()].sort().values
    middle = (x[:-1] + x[1:]) / 2
    inf = torch.tensor(torch.inf)
    ends = torch.tensor([448, 464, 479, 480, 240, 247, 248, 256, 57344, 61440, 65535, 65536, 1e30, 1e-9, torch.inf])
    x = torch.cat([middle, middle.nextafter(inf), middle.nextafter(-inf), ends, -ends])
    assert_same_bits(run_on_device(x.to(DEVICE).to, dtype), x.to(dtype), nan_payload=False)


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_complex_parts(dtype: torch.dtype) -> None:
    x = make((66,), dtype, 0, (0, 100))
    assert_same(x.to(DEVICE).to(torch.complex64), x.to(torch.complex64), exact=True)
    z = torch.complex(make((66,), torch.float32, 0, (0, 100)), make((66,), torch.float32, 1))
    if dtype == torch.bool:  # true where either part is
        assert_same(z.to(DEVICE).to(dtype), z.to(dtype))
        return
    torch.set_warn_always(True)
    with pytest.warns(UserWarning, match="discards the imaginary part"):
        actual = z.to(DEVICE).to(dtype)
    torch.set_warn_always(False)
    assert_same_bits(actual, z.real.to(dtype), nan_payload=False)
