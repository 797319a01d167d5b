"""Conversions between dtypes, exact to the last bit: rounding, ties, overflow, denormals, 64-bit integers."""

import pytest
import torch

from tests.support import DEVICE, DTYPES, INTS, assert_same, assert_same_bits, make, name_of, run_on_device, to_device


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


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_complex_parts(dtype: torch.dtype) -> None:
    x = make((66,), dtype, 0, (0, 100))
    assert_same(x.to(DEVICE).to(torch.complex64), x.to(torch.complex64), exact=True)
    z = torch.complex(make((66,), torch.float32, 0, (0, 100)), make((66,), torch.float32, 1))
    torch.set_warn_always(True)
    with pytest.warns(UserWarning, match="discards the imaginary part"):
        actual = z.to(DEVICE).to(dtype)
    torch.set_warn_always(False)
    assert_same_bits(actual, z.real.to(dtype), nan_payload=False)
