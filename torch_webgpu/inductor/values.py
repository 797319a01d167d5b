"""Values of a kernel: what type each computes as, and how an op is applied to them."""

from __future__ import annotations

import functools
import math
from typing import Any

import torch
from torch._inductor.codegen.common import CSEVariable
from torch._inductor.virtualized import V
from torch.utils._sympy.value_ranges import ValueRanges

from torch_webgpu.inductor import library
from torch_webgpu.inductor.types import COMPUTE, I32_HIGH, I32_LOW, convert, from_raw, literal, to_raw

SMALL_INTS = (torch.int16, torch.int8, torch.uint8)


class Value(CSEVariable):
    """A value of a kernel. `compute` may be narrower than the dtype's: an int64 that is known to fit an i32, as
    indices do, computes as one. `number` is set where the value is a literal, `most_of` on the largest element of a row
    (the values of which it is the largest), and `below_most` on the distance of an element to it: "known" if it is sure
    to be one of these values, else "likely"."""

    most_of: Value | None = None
    below_most = ""
    sorted_from: tuple[str, torch.dtype] | None = (
        None  # of a sorted row: how it is read again, and what it is stored as
    )

    def __init__(self, name: str, bounds: ValueRanges[Any], dtype: Any = None, shape: Any = None) -> None:
        super().__init__(name, bounds, dtype, shape)
        self.compute = COMPUTE.get(dtype, "f32")
        self.number: Any = None


def emit(text: str, dtype: torch.dtype, compute: str | None = None, bounds: Any = None) -> Value:
    """A variable of the kernel's body that holds an expression."""
    kernel = V.kernel
    dtype = torch.float32 if dtype.is_floating_point else dtype
    compute = compute or COMPUTE[dtype]
    var = kernel.cse.generate(kernel.compute, text, dtype=dtype, shape=(), bounds=bounds or ValueRanges.unknown())
    if var.use_count == 1 and var.number is None and var.dtype is dtype:
        var.compute = compute
    if (var.dtype, var.compute) == (dtype, compute):
        return var
    other = Value(var.name, ValueRanges.unknown(), dtype, ())  # the same text as a value of another dtype
    other.compute = compute
    return other


def make_literal(number: Any, dtype: torch.dtype) -> Value:
    dtype = torch.float32 if dtype.is_floating_point else dtype
    narrow = dtype is torch.int64 and not isinstance(number, float) and I32_LOW <= number <= I32_HIGH
    compute = "i32" if narrow else COMPUTE[dtype]
    bounds = ValueRanges.unknown() if dtype is torch.bool or number != number else ValueRanges.wrap(number)
    value = Value(literal(number, compute), bounds, dtype, ())
    if "_f32(" in value.name:
        V.kernel.library.use_type("f32")
    value.compute, value.number = compute, number
    return value


def as_compute(value: Any, compute: str) -> str:
    """An operand's expression in a compute type."""
    if not isinstance(value, CSEVariable):
        return literal(value, compute)
    assert isinstance(value, Value), value
    if value.compute == compute:
        return value.name
    if value.number is not None:
        return literal(value.number, compute)
    V.kernel.library.use_type(value.compute)
    V.kernel.library.use_type(compute)
    return convert(value.compute, compute, value.name)


def promoted(*values: Any) -> torch.dtype:
    dtypes: list[Any] = [v.dtype for v in values if isinstance(v, CSEVariable)]
    if not dtypes:
        return torch.float32 if any(isinstance(v, float) for v in values) else torch.int64
    return functools.reduce(torch.promote_types, dtypes)


def is_narrow(value: Any) -> bool:
    if isinstance(value, Value):
        return value.compute in ("i32", "bool")
    return isinstance(value, (bool, int)) and I32_LOW <= value <= I32_HIGH


def range_of(value: Any) -> tuple[int, int] | None:
    if not isinstance(value, Value):
        return int(value), int(value)
    if value.compute == "bool":
        return 0, 1
    return ends_of(value.bounds)


def ends_of(bounds: ValueRanges[Any]) -> tuple[int, int] | None:
    """The ends of a known range of integers."""
    if bounds.is_bool or not (bounds.lower.is_finite and bounds.upper.is_finite):
        return None
    return math.floor(bounds.lower), math.ceil(bounds.upper)


def _narrow_range(name: str, values: tuple[Any, ...]) -> tuple[int, int] | None:
    """What an arithmetic op of narrow values gives, if that is known to fit an i32."""
    one, other = map(range_of, values) if len(values) == 2 else (None, None)
    if one is None or other is None:
        return None
    (a, b), (c, d) = one, other
    products = (a * c, a * d, b * c, b * d)
    found = {"add": (a + c, b + d), "sub": (a - d, b - c), "mul": (min(products), max(products))}
    ends = found.get(name)
    return ends if ends and ends[0] >= I32_LOW and ends[1] <= I32_HIGH else None


KEEPS_RANGE = frozenset(("maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor", *library.COMPARISONS))
# Ops whose results of small integers may leave their range, which eager cuts when it stores.
STAYS_SMALL = frozenset(("maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor", "sign", "remainder", "fmod"))


def apply(name: str, *values: Any, dtype: torch.dtype | None = None) -> Value:
    """An op whose operands have one type, which is the result's unless it is a comparison."""
    dtype = dtype or promoted(*values)
    dtype = torch.float32 if dtype.is_floating_point else dtype
    compute, bounds = COMPUTE[dtype], None
    if compute == "i64" and all(map(is_narrow, values)):
        ends = _narrow_range(name, values)
        if name in KEEPS_RANGE or ends:
            compute = "i32"
            bounds = ValueRanges(*ends) if ends else None
    if compute == "bool" and name in ("sub", "truncdiv", "floordiv", "remainder", "fmod", "neg", "pow"):
        compute, dtype = "i32", torch.int32
    text = V.kernel.library.call(name, compute, [as_compute(value, compute) for value in values])
    if name in library.RETURN_BOOL:
        return emit(text, torch.bool)
    if dtype in SMALL_INTS and name not in STAYS_SMALL:
        text = cut(text, dtype)
    return emit(text, dtype, compute, bounds)


def cut(text: str, dtype: torch.dtype) -> str:
    """Wraps a value as storing it in a dtype that is smaller than a word does."""
    V.kernel.library.use("storage")
    return from_raw(dtype, to_raw(dtype, text))
