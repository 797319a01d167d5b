"""`out=` and in-place forms: where the result goes, and what lies beside it."""

import warnings
from collections.abc import Callable

import pytest
import torch

from tests.ops.table import BY_NAME, compare
from tests.support import (
    DEVICE,
    DTYPES,
    assert_same,
    assert_same_error,
    assert_same_storage,
    clone_layout,
    make,
    name_of,
    outcome,
    run_on_device,
    to_device,
)

UNARY = ("neg", "abs", "exp", "log", "sqrt", "rsqrt", "relu", "sigmoid", "tanh")
BINARY = ("add", "sub", "mul", "div", "eq", "ne", "lt", "le", "gt", "ge", "clamp_min", "clamp_max")
NO_INPLACE = ("minimum", "maximum", "where")

# Where an in-place op writes, cut out of one storage: the rest of it must stay as it was.
PLACES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "all": lambda x: x,
    "columns": lambda x: x[:, 1::3],
    "column": lambda x: x[:, 3],
    "row": lambda x: x[2, 1:6],
    "transposed": lambda x: x.t()[1:],
    "one": lambda x: x[1, 2],
    "tail": lambda x: x.view(-1)[61:],
    "head": lambda x: x.view(-1)[:3],
    "odd": lambda x: x.view(-1)[1::2],
}


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
@pytest.mark.parametrize("place", PLACES)
def test_in_place_leaves_the_neighbours(place: str, dtype: torch.dtype) -> None:
    for name, other in (("add_", 3), ("mul_", 1), ("neg_", None), ("fill_", 1), ("zero_", None), ("clamp_", 1)):
        target = PLACES[place](make((6, 11), dtype))
        moved = to_device(target)
        args = () if other is None else (other,)
        _, refused = outcome(getattr(target, name), *args)
        if refused is not None:
            assert_same_error(outcome(getattr(moved, name), *args)[1], refused, name)
            continue
        result = run_on_device(getattr(moved, name), *args)
        assert result is moved, name
        assert_same_storage(moved, target, f"{name} in {place}")


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
@pytest.mark.parametrize("name", (*UNARY, *BINARY))
def test_in_place(name: str, dtype: torch.dtype) -> None:
    for layout in ("contiguous", "transposed", "sliced", "self"):
        target = make((9, 26), dtype, 0)[1::2, 3::2] if layout == "sliced" else make((5, 12), dtype, 0)
        target = target.t() if layout == "transposed" else target
        other = target if layout == "self" else make(tuple(target.shape), dtype, 1)
        args = (other,) if name in BINARY else ()
        moved_target, moved_args = to_device((target, args))
        method = f"{name}_"
        _, refused = outcome(getattr(target, method), *args)
        if refused is not None:
            error = outcome(getattr(moved_target, method), *moved_args)[1]
            assert type(error) is type(refused), f"{layout}: {error!r}, but the CPU {refused!r}"
            continue
        run_on_device(getattr(moved_target, method), *moved_args)
        row = BY_NAME["clamp_min_tensor" if name.startswith("clamp") else name]
        compare(row, moved_target, target, layout)


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_in_place_with_another_dtype(dtype: torch.dtype) -> None:
    for other in DTYPES:
        target, operand = make((33,), dtype, 0), make((33,), other, 1)
        moved_target, moved_operand = to_device((target, operand))
        _, refused = outcome(target.mul_, operand)
        if refused is not None:
            assert_same_error(outcome(moved_target.mul_, moved_operand)[1], refused, str(other))
            continue
        run_on_device(moved_target.mul_, moved_operand)
        assert_same(moved_target, target, str(other), exact=True)


@pytest.mark.parametrize("shift", (-2, -1, 1, 2))
def test_in_place_on_overlapping_memory_is_refused(shift: int) -> None:
    x = make((40,), torch.float32)
    target, other = x[2:36], x[2 + shift : 36 + shift]
    moved_target, moved_other = to_device((target, other))
    _, refused = outcome(target.add_, other)
    assert refused is not None
    assert_same_error(outcome(moved_target.add_, moved_other)[1], refused)


def test_in_place_on_an_expanded_tensor_is_refused() -> None:
    target = torch.zeros(1).expand(4)
    for call in (lambda x: x.add_(1), lambda x: x.neg_(), lambda x: torch.neg(torch.ones(4, device=x.device), out=x)):
        assert_same_error(outcome(call, to_device(target))[1], outcome(call, target)[1])
        assert outcome(call, target)[1] is not None


# out=

OUT: dict[str, Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "add": lambda a, b, out: torch.add(a, b, out=out),
    "sub": lambda a, b, out: torch.sub(a, b, out=out),
    "mul": lambda a, b, out: torch.mul(a, b, out=out),
    "div": lambda a, b, out: torch.div(a, b, out=out),
    "minimum": lambda a, b, out: torch.minimum(a, b, out=out),
    "maximum": lambda a, b, out: torch.maximum(a, b, out=out),
    "lt": lambda a, b, out: torch.lt(a, b, out=out),
    "eq_scalar": lambda a, b, out: torch.eq(a, 1, out=out),
    "where": lambda a, b, out: torch.where(a < b, a, b, out=out),
    "clamp": lambda a, b, out: torch.clamp(a, 0, 1, out=out),
    "clamp_tensors": lambda a, b, out: torch.clamp(a, b, b, out=out),
    "clamp_min": lambda a, b, out: torch.clamp_min(a, 1, out=out),
    "neg": lambda a, b, out: torch.neg(a, out=out),
    "abs": lambda a, b, out: torch.abs(a, out=out),
    "exp": lambda a, b, out: torch.exp(a, out=out),
    "sqrt": lambda a, b, out: torch.sqrt(a, out=out),
    "tanh": lambda a, b, out: torch.tanh(a, out=out),
}


def out_case(name: str, inputs: torch.dtype, out: torch.Tensor) -> None:
    a, b = make((6, 11), inputs, 0), make((6, 11), inputs, 1)
    moved_a, moved_b, moved_out = to_device((a, b, out))
    call = OUT[name]
    with warnings.catch_warnings(record=True) as expected_warnings:
        warnings.simplefilter("always")
        _, refused = outcome(call, a, b, out)
    with warnings.catch_warnings(record=True) as actual_warnings:
        warnings.simplefilter("always")
        if refused is not None:
            error = outcome(call, moved_a, moved_b, moved_out)[1]
            assert type(error) is type(refused), f"{out.dtype}: {error!r}, but the CPU {refused!r}"
            return
        result = run_on_device(call, moved_a, moved_b, moved_out)
    assert [str(w.message) for w in actual_warnings] == [str(w.message) for w in expected_warnings]
    assert result is moved_out
    row = BY_NAME[name]
    compare(row, moved_out, out, f"{inputs} into {out.dtype}")


@pytest.mark.parametrize("name", OUT)
def test_out_of_every_dtype(name: str) -> None:
    for dtype in DTYPES:
        for inputs in (torch.float32, torch.int64, dtype):
            out_case(name, inputs, torch.zeros((6, 11), dtype=dtype))


# The CPU computes in the common dtype, cuts the result to it, and only then converts to that of out.
INTEGER_OUT: dict[str, Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "add": lambda a, b, out: torch.add(a, b, out=out),
    "add_alpha": lambda a, b, out: torch.add(a, b, alpha=3, out=out),
    "sub": lambda a, b, out: torch.sub(a, b, out=out),
    "mul": lambda a, b, out: torch.mul(a, b, out=out),
    "neg": lambda a, b, out: torch.neg(a, out=out),
    "abs": lambda a, b, out: torch.abs(a, out=out),
    "square": lambda a, b, out: torch.square(a, out=out),
    "pow": lambda a, b, out: torch.pow(a, 3, out=out),
    "addcmul": lambda a, b, out: torch.addcmul(a, a, b, value=2, out=out),
    "bitwise_not": lambda a, b, out: torch.bitwise_not(a, out=out),
    "bitwise_xor": lambda a, b, out: torch.bitwise_xor(a, b, out=out),
    "left_shift": lambda a, b, out: torch.bitwise_left_shift(a, 3, out=out),
    "div_floor": lambda a, b, out: torch.div(a, b, rounding_mode="floor", out=out),
    "remainder": lambda a, b, out: torch.remainder(a, b, out=out),
    "gcd": lambda a, b, out: torch.gcd(a, b, out=out),
    "lcm": lambda a, b, out: torch.lcm(a, b, out=out),
    "clamp_min": lambda a, b, out: torch.clamp_min(a, 1, out=out),
}
WIDER = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float32)


@pytest.mark.parametrize("name", INTEGER_OUT)
def test_integers_are_cut_before_a_wider_out(name: str) -> None:
    call = INTEGER_OUT[name]
    for inputs in WIDER[:4]:
        a, b = make((40,), inputs, 0), make((40,), inputs, 2)
        b = torch.where(b == 0, 1, b)
        moved_a, moved_b = to_device((a, b))
        for dtype in WIDER:
            if dtype.itemsize < inputs.itemsize or dtype == inputs:
                continue
            expected, actual = torch.zeros(40, dtype=dtype), torch.zeros(40, dtype=dtype, device=DEVICE)
            refused = outcome(call, a, b, expected)[1]
            if refused is not None:
                assert_same_error(outcome(call, moved_a, moved_b, actual)[1], refused, f"{inputs} into {dtype}")
                continue
            run_on_device(call, moved_a, moved_b, actual)
            assert_same(actual, expected, f"{inputs} into {dtype}", exact=True)


@pytest.mark.parametrize("inputs", (torch.float16, torch.bfloat16), ids=name_of)
def test_small_floats_are_rounded_before_a_wider_out(inputs: torch.dtype) -> None:
    for name in ("add", "sub", "mul"):
        a, b = make((40,), inputs, 0), make((40,), inputs, 1)
        expected, actual = torch.zeros(40), torch.zeros(40, device=DEVICE)
        OUT[name](a, b, expected)
        run_on_device(OUT[name], *to_device((a, b)), actual)
        assert_same(actual, expected, name, exact=True)


@pytest.mark.parametrize("name", OUT)
def test_out_with_strides_or_of_another_size(name: str) -> None:
    dtype = torch.bool if name in ("lt", "eq_scalar") else torch.float32
    out_case(name, torch.float32, torch.zeros((11, 6), dtype=dtype).t())
    out_case(name, torch.float32, torch.zeros((13, 30), dtype=dtype)[1::2, 3:14])
    out_case(name, torch.float32, torch.zeros((0,), dtype=dtype))
    out_case(name, torch.float32, torch.zeros((3,), dtype=dtype))


@pytest.mark.parametrize("dtype", (torch.int8, torch.uint8, torch.bool, torch.float16, torch.int16), ids=name_of)
def test_strided_out_leaves_the_neighbours(dtype: torch.dtype) -> None:
    out = make((13, 30), dtype)[1::2, 3:14]
    a, b = make((6, 11), dtype, 0), make((6, 11), dtype, 1)
    moved_a, moved_b, moved_out = to_device((a, b, out))
    torch.mul(a, b, out=out)
    run_on_device(torch.mul, moved_a, moved_b, out=moved_out)
    assert_same_storage(moved_out, out)


def test_out_may_be_an_input_but_not_overlap_one() -> None:
    x = make((40,), torch.float32)
    same = clone_layout(x)
    moved = to_device(same)
    torch.mul(same, same, out=same)
    run_on_device(torch.mul, moved, moved, out=moved)
    assert_same(moved, same, exact=True)
    a, out = x[:30], x[1:31]
    moved_a, moved_out = to_device((a, out))
    refused = outcome(torch.mul, a, a, out=out)[1]
    assert refused is not None
    assert_same_error(outcome(torch.mul, moved_a, moved_a, out=moved_out)[1], refused)


def test_out_on_another_device_is_refused() -> None:
    x = torch.ones(3, device=DEVICE)
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        torch.add(x, x, out=torch.empty(3))
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        torch.add(torch.ones(3), 1, out=torch.empty(3, device=DEVICE))
