"""PyTorch's own samples for every op that is native so far: forward, strided inputs, out=, gradients, errors."""

import re
from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest
import torch

from tests.ops.native_ops import EXPECTED_FAILURES, FALLING_BACK, MOVERS, NATIVE, WITH_THE_CPU, tolerance
from tests.ops.opinfo import (
    Call,
    calls,
    check_forward,
    check_gradients,
    check_inplace,
    check_out,
    describe,
    opinfos,
    quietly,
    samples_of,
)
from tests.support import DEVICE, DTYPES, STORED_ONLY, fallback_mode, name_of, outcome

GRADIENTS = (torch.float32,)  # the others differ in storage alone
STORAGES = (torch.float32, torch.float16, torch.int64, torch.bool)  # elements of 4, 2, 8 and 1 bytes


def cases(check: str, dtypes: tuple[torch.dtype, ...], applies: Callable[[Any], Any] = lambda op: True) -> list[Any]:
    """(op, dtype) for all ops the CPU has in that dtype, with those marked that are known to fail."""
    found = []
    for name in NATIVE:
        op = opinfos()[name]
        for dtype in dtypes:
            if dtype not in op.supported_dtypes("cpu") or not applies(op):
                continue
            reason = EXPECTED_FAILURES.get((name, check, dtype)) or EXPECTED_FAILURES.get((name, check, None))
            marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason else []
            found.append(pytest.param(name, dtype, id=f"{name}-{name_of(dtype)}", marks=marks))
    return found


@pytest.mark.parametrize(("name", "dtype"), cases("samples", DTYPES))
def test_samples(name: str, dtype: torch.dtype) -> None:
    op = opinfos()[name]
    tried = sum(check_forward(op, call, tolerance(name, dtype)) for call in samples_of(op, dtype))
    assert tried > 0, "not one sample that the device can hold"


STORED_CASES = [
    (name, dtype) for dtype in STORED_ONLY for name in MOVERS if dtype in opinfos()[name].supported_dtypes("cpu")
]


@pytest.mark.parametrize(
    ("name", "dtype"), STORED_CASES, ids=lambda value: value if isinstance(value, str) else name_of(value)
)
def test_samples_of_dtypes_without_arithmetic(name: str, dtype: torch.dtype) -> None:
    op = opinfos()[name]
    exact = {"rtol": 0, "atol": 0}
    tried = sum(check_forward(op, call, exact, native=True) for call in islice(samples_of(op, dtype), 6))
    assert tried > 0, "not one sample that the device can hold"


@pytest.mark.parametrize("dtype", (torch.float64, torch.complex64, torch.complex128), ids=name_of)
@pytest.mark.parametrize("name", FALLING_BACK)
def test_samples_by_the_cpu(name: str, dtype: torch.dtype) -> None:
    op = opinfos()[name]
    if dtype not in op.supported_dtypes("cpu"):
        return
    with fallback_mode("quiet"):
        for call in islice(samples_of(op, dtype), 3):
            check_forward(op, call, {}, native=False)
        if op.supports_autograd and dtype == torch.float64:
            for call in islice(samples_of(op, dtype, grad=True), 2):
                check_gradients(op, call, {}, native=False)


@pytest.mark.parametrize(
    "name", [name for name in WITH_THE_CPU if torch.float32 in opinfos()[name].supported_dtypes("cpu")]
)
def test_samples_with_the_cpus_help(name: str) -> None:
    op = opinfos()[name]
    with fallback_mode("quiet"):
        for call in islice(samples_of(op, torch.float32), 12):
            check_forward(op, call, tolerance(name, torch.float32), native=False)
        for call in islice(samples_of(op, torch.float32, grad=True), 4 if op.supports_autograd else 0):
            check_gradients(op, call, tolerance(name, torch.float32, "gradients"), native=False)


@pytest.mark.parametrize(("name", "dtype"), cases("noncontiguous", STORAGES))
def test_noncontiguous(name: str, dtype: torch.dtype) -> None:
    op = opinfos()[name]
    for call in samples_of(op, dtype, "noncontiguous"):
        check_forward(op, call, tolerance(name, dtype))


@pytest.mark.parametrize(("name", "dtype"), cases("reference", (torch.float32,)))
def test_reference(name: str, dtype: torch.dtype) -> None:
    op = opinfos()[name]
    for call in samples_of(op, dtype, "reference"):
        check_forward(op, call, tolerance(name, dtype, "reference"))


@pytest.mark.parametrize(("name", "dtype"), cases("inplace", STORAGES, lambda op: op.inplace_variant is not None))
def test_inplace(name: str, dtype: torch.dtype) -> None:
    op = opinfos()[name]
    for call in samples_of(op, dtype):
        check_inplace(op, call, tolerance(name, dtype))


@pytest.mark.parametrize(("name", "dtype"), cases("out", STORAGES, lambda op: op.supports_out))
def test_out(name: str, dtype: torch.dtype) -> None:
    op = opinfos()[name]
    for call in samples_of(op, dtype):
        check_out(op, call, tolerance(name, dtype))


@pytest.mark.parametrize(("name", "dtype"), cases("gradients", GRADIENTS, lambda op: op.supports_autograd))
def test_gradients(name: str, dtype: torch.dtype) -> None:
    op = opinfos()[name]
    for call in samples_of(op, dtype, grad=True):
        check_gradients(op, call, tolerance(name, dtype, "gradients"))


def refuses(op: Any, call: Call, pattern: str) -> None:
    # What is wrong with an argument of a dtype that is only stored, the fallback tells.
    with quietly(), fallback_mode("quiet"):
        refused, error = (outcome(call.on, where, op.op)[1] for where in ("cpu", DEVICE))
        waited = outcome(torch.webgpu.synchronize)[1]  # what only the device sees
    if refused is None:  # a mistake in PyTorch's list: clamp_max takes a number
        return
    if isinstance(waited, IndexError) and re.search("out of (bounds|range)", str(refused)):
        return
    error = error or waited
    assert type(error) is type(refused), f"{describe(call)}: {error!r}, but the CPU {refused!r}"
    assert re.search(pattern, str(error)), f"{describe(call)}: {error!r}, but the CPU {refused!r}"


@pytest.mark.parametrize(
    ("name", "dtype"), cases("errors", (torch.float32,), lambda op: op.error_inputs_func is not None)
)
def test_errors(name: str, dtype: torch.dtype) -> None:
    op = opinfos()[name]
    for error in op.error_inputs("cpu"):
        for call in calls(iter([error.sample_input]), op):
            refuses(op, call, error.error_regex)
