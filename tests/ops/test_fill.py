"""Tensors filled with one value or a sequence: fill_, zero_, full, arange."""

import pytest
import torch

from tests.support import (
    DEVICE,
    DTYPES,
    FLOATS,
    INTS,
    STORED,
    STORED_ONLY,
    assert_same,
    assert_same_error,
    assert_same_storage,
    make,
    name_of,
    outcome,
    run_on_device,
    to_device,
)

VALUES = (0, 1, -1, 2.5, True, 200, -129, 70000, 2**31, 2**40 + 3, -(2**62) - 1, torch.nan, -torch.inf, -0.0, 1e-3)


@pytest.mark.parametrize("dtype", STORED, ids=name_of)
def test_fill_and_full(dtype: torch.dtype) -> None:
    for value in VALUES:
        expected, refused = outcome(torch.full, (7,), value, dtype=dtype)
        for call in (
            lambda: torch.full((7,), value, dtype=dtype, device=DEVICE),  # noqa: B023
            lambda: torch.empty((7,), dtype=dtype, device=DEVICE).fill_(value),  # noqa: B023
        ):
            if refused is not None:
                assert_same_error(outcome(call)[1], refused, str(value))
            else:
                assert_same(run_on_device(call), expected, str(value), exact=True)


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_fill_with_a_tensor(dtype: torch.dtype) -> None:
    for other in DTYPES:
        for where in ("cpu", DEVICE):
            value = torch.tensor(3).to(other)
            expected = torch.zeros(7, dtype=dtype).fill_(value)
            actual = torch.zeros(7, dtype=dtype, device=DEVICE)
            # a value of the host may be uploaded as it is
            run_on_device(actual.fill_, value.to(where), dispatches=True if where == DEVICE else None)
            assert_same(actual, expected, f"{other} {where}", exact=True)


@pytest.mark.parametrize("dtype", STORED, ids=name_of)
def test_layouts(dtype: torch.dtype) -> None:
    for name, place in {
        "0-d": lambda x: x[1, 2],
        "empty": lambda x: x[:0],
        "transposed": lambda x: x.t(),
        "sliced": lambda x: x[1::2, 3::2],
        "overlapping": lambda x: x.as_strided((4, 4), (1, 1), 3),
        "expanded": lambda x: x[:1].expand(6, 11),
        "tail": lambda x: x.view(-1)[65:],
    }.items():
        for value in (0, 1):
            expected = place(make((6, 11), dtype))
            actual = to_device(expected)
            expected.fill_(value)
            run_on_device(actual.fill_, value)
            assert_same_storage(actual, expected, f"fill_({value}) {name}")
        run_on_device(actual.zero_)
        assert_same_storage(actual, expected.zero_(), f"zero_ {name}")


ARANGES = (
    (5,),
    (2.5,),
    (1, 8),
    (8, 1, -2),
    (0, 1, 0.1),
    (1, 0, -0.25),
    (-5, 5, 3),
    (3, 3),
    (0.5, 7),
    (1, 2.0001, 0.25),
    (0, 10, 3),
)


@pytest.mark.parametrize(
    "dtype", (None, *FLOATS, *INTS, *STORED_ONLY), ids=lambda d: "default" if d is None else name_of(d)
)
def test_arange(dtype: torch.dtype | None) -> None:
    for args in ARANGES:
        expected, refused = outcome(torch.arange, *args, dtype=dtype)
        if refused is not None:
            assert_same_error(outcome(torch.arange, *args, dtype=dtype, device=DEVICE)[1], refused, str(args))
            continue
        # the dtypes that kernels do not compute with are uploaded
        dispatches = None if dtype in STORED_ONLY else True
        actual = run_on_device(torch.arange, *args, dtype=dtype, device=DEVICE, dispatches=dispatches)
        # start + index * step: fused or not, and the CPU's vectors add the step to a base
        assert_same(actual, expected, str(args), exact=not expected.is_floating_point())


def test_arange_beyond_32_bits() -> None:
    for args in ((2**40, 2**40 + 9, 2), (-(2**53), -(2**53) + 5), (2**62, 2**63 - 1, 2**60), (10**12, 0, -(10**11))):
        assert_same(torch.arange(*args, device=DEVICE), torch.arange(*args), str(args))


def test_arange_large() -> None:
    count = 20_000_003  # more than an index of 24 bits
    assert_same(torch.arange(count, device=DEVICE, dtype=torch.int32), torch.arange(count, dtype=torch.int32))
    ends = torch.arange(count, device=DEVICE, dtype=torch.float32)[2**24 - 4 :].cpu()
    assert torch.equal(ends, torch.arange(count, dtype=torch.float32)[2**24 - 4 :])


def test_arange_out() -> None:
    for out in (torch.empty(5), torch.empty(0), torch.empty(5, dtype=torch.int64), torch.empty(10)[::2]):
        actual = to_device(out)
        torch.arange(1, 11, 2, out=out)
        result = run_on_device(torch.arange, 1, 11, 2, out=actual)
        assert result is actual
        assert_same(actual, out)
    with pytest.warns(UserWarning, match="does not match the computed number of elements"):
        out = torch.arange(4, out=torch.empty(7, device=DEVICE))
    assert out.tolist() == [0, 1, 2, 3]
