"""The pointwise ops and the layouts they are tried in. A new op is one row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from tests.support import (
    Domain,
    assert_same,
    make,
    outcome,
    run_on_device,
    special_values,
    to_device,
    ulps,
)

Args = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Op:
    """A row: how many tensors it takes and how far a float32 result may be from the CPU's, in units of the last place.

    A float16 or bfloat16 result is computed in float32 and rounded, so it may differ by one unit where that may differ
    at all. Which zero a minimum of both is, the CPU leaves open: its vectors and its remainders disagree.
    """

    name: str
    call: Callable[..., torch.Tensor]
    tensors: int
    ulps: float = 0
    domain: Domain | None = None
    bool_first: bool = False
    signed_zeros: bool = True


# WGSL rounds +, - and * correctly, gives / 2.5 units, and lets sqrt be 1 / inverseSqrt (2 units, then 2.5).
DIVISION = 2.5
SQRT = 4.5
# sums and products may be fused on either side: one rounding less, up to a unit where nothing cancels
FUSED = 1
# polynomials of our own against SLEEF's of one unit
EXP = 3
LOG = 4
# an exponential in a quotient
LOGISTIC = EXP + DIVISION

OPS = (
    Op("add", torch.add, 2),
    Op("add_alpha", lambda a, b: torch.add(a, b, alpha=3), 2, FUSED, (0, 100)),
    Op("sub", torch.sub, 2),
    Op("sub_alpha", lambda a, b: torch.sub(a, b, alpha=-3), 2, FUSED, (0, 100)),
    Op("mul", torch.mul, 2),
    Op("div", torch.div, 2, DIVISION),
    Op("minimum", torch.minimum, 2, signed_zeros=False),
    Op("maximum", torch.maximum, 2, signed_zeros=False),
    Op("eq", torch.eq, 2),
    Op("ne", torch.ne, 2),
    Op("lt", torch.lt, 2),
    Op("le", torch.le, 2),
    Op("gt", torch.gt, 2),
    Op("ge", torch.ge, 2),
    Op("clamp_tensors", torch.clamp, 3, signed_zeros=False),
    Op("clamp_min_tensor", lambda a, b: torch.clamp(a, min=b), 2, signed_zeros=False),
    Op("clamp_max_tensor", lambda a, b: torch.clamp(a, max=b), 2, signed_zeros=False),
    Op("where", torch.where, 3, bool_first=True),
    Op("neg", torch.neg, 1),
    Op("abs", torch.abs, 1),
    Op("exp", torch.exp, 1, EXP),
    Op("log", torch.log, 1, LOG),
    Op("sqrt", torch.sqrt, 1, SQRT),
    Op("rsqrt", torch.rsqrt, 1, SQRT + DIVISION),
    Op("relu", torch.relu, 1),
    Op("sigmoid", torch.sigmoid, 1, LOGISTIC),
    Op("tanh", torch.tanh, 1, LOGISTIC),
    Op("add_scalar", lambda a: a + 3, 1),
    Op("rsub_scalar", lambda a: 3 - a, 1),
    Op("mul_scalar", lambda a: a * 3, 1),
    Op("div_scalar", lambda a: a / 3, 1, DIVISION),
    Op("eq_scalar", lambda a: a == 1, 1),
    Op("ne_scalar", lambda a: a != 1, 1),
    Op("lt_scalar", lambda a: a < 1, 1),
    Op("le_scalar", lambda a: a <= 1, 1),
    Op("gt_scalar", lambda a: a > 1, 1),
    Op("ge_scalar", lambda a: a >= 1, 1),
    Op("clamp", lambda a: torch.clamp(a, 1, 3), 1),
    Op("clamp_crossed", lambda a: torch.clamp(a, 3, 1), 1),  # the maximum wins
    Op("clamp_min", lambda a: torch.clamp_min(a, 1), 1),
    Op("clamp_max", lambda a: torch.clamp_max(a, 1), 1),
)

BY_NAME = {op.name: op for op in OPS}


def operands(op: Op, shapes: tuple[tuple[int, ...], ...], dtype: torch.dtype) -> list[torch.Tensor]:
    """One tensor per operand, each with values of its own."""
    result = [make(shapes[i % len(shapes)], dtype, i, op.domain) for i in range(op.tensors)]
    if op.bool_first:
        result[0] = make(shapes[0], torch.bool)
    return result


def cases(op: Op, dtype: torch.dtype) -> Iterator[tuple[str, Args]]:
    """The operands of every layout, named; enough of them to meet all special values, and each other."""

    def of(*shapes: tuple[int, ...]) -> list[torch.Tensor]:
        return operands(op, shapes, dtype)

    yield "contiguous", (*of((6, 11)),)
    first, *rest = of((11, 6), (6, 11), (6, 11))
    yield "transposed", (first.t(), *(x.reshape(6, 11) for x in rest))
    yield "sliced", (*(x[1::2, 3::2] for x in of((9, 26))),)
    first, *rest = of((6, 1), (6, 11), (6, 11))
    yield "expanded", (first.expand(6, 11), *rest)
    yield "0-d", (*of(()),)
    yield "empty", (*of((0, 3)),)
    yield "channels_last", (*(x.contiguous(memory_format=torch.channels_last) for x in of((2, 3, 4, 5))),)
    for offset in (1, 2, 3):
        yield f"offset {offset}", (*(x[offset : offset + 33] for x in of((40,))),)
    first, *rest = of((40,))
    yield "one offset", (first[1:33], *(x[4:36] for x in rest))
    for count in (1, 2, 3, 5):
        yield f"{count} elements", (*of((count,)),)
    if op.tensors > 1 and not op.bool_first:
        x = make((6, 11), dtype, 1, op.domain)
        yield "same tensor", (x,) * op.tensors
        yield "its transpose", (x[:, :6], *(x[:, :6].t(),) * (op.tensors - 1))
        x = make((40,), dtype, 1, op.domain)
        yield "overlapping", (*(x[i : i + 33] for i in range(op.tensors)),)
        column = special_values(dtype)
        if op.domain is None:
            yield "specials", (column[:, None], *(column[None, :],) * (op.tensors - 1))


def compare(op: Op, actual: torch.Tensor, expected: torch.Tensor, message: str) -> None:
    """By the row's own tolerance; nothing absolute but what the smallest normal number hides (WGSL may flush).

    Twice that, since the CPU itself flushes on the way: its erf of the smallest bfloat16 is zero.
    """
    if op.ulps == 0 or not expected.is_floating_point():
        assert_same(actual, expected, message, exact=op.signed_zeros, rtol=0, atol=0, arithmetic=True)
        return
    info = torch.finfo(expected.dtype)
    units = op.ulps if expected.dtype == torch.float32 else 1
    atol = info.tiny * info.eps if expected.dtype == torch.float16 else 2 * info.tiny
    assert_same(actual, expected, message, rtol=ulps(units, expected.dtype), atol=atol)


def check(op: Op, name: str, args: Args) -> None:
    """The device gives the CPU's answer, or refuses as it does."""
    message = describe(f"{op.name} {name} {args[0].dtype}", args)
    expected, refused = outcome(op.call, *args)
    moved = to_device(args)
    if refused is not None:
        error = outcome(op.call, *moved)[1]
        assert type(error) is type(refused), f"{message}: {error!r}, but the CPU {refused!r}"
        return
    compare(op, run_on_device(op.call, *moved), expected, message)


def check_dtypes(op: Op, dtypes: tuple[torch.dtype, ...]) -> None:
    """One layout of each dtype, and float32's special values against each other: for ops whose kernels differ from
    those of OPS in their formula alone."""
    for dtype in dtypes:
        check(op, "contiguous", tuple(operands(op, ((6, 11),), dtype)))
    if op.domain is None:
        column = special_values(torch.float32)
        columns = [column[:, None], column[None, :], column[None, :].flip(1)][: op.tensors]
        check(op, "specials", tuple(x.contiguous() for x in torch.broadcast_tensors(*columns)))


def describe(name: str, args: Any) -> str:
    return f"{name} {[(tuple(x.shape), x.stride(), x.storage_offset()) for x in args]}"
