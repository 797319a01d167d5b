"""Random tensors, views and chains of ops against the CPU. TORCH_WEBGPU_PROPERTIES=600 goes on for so many seconds,
with other examples each time; without it each test has the same thousand examples in every run.

Floats are small whole numbers, so that sums and products are exact in every dtype and can be compared to the bit.
"""

from __future__ import annotations

import itertools
import os
import random
import time
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, assume, given, seed, settings
from hypothesis import strategies as st

from tests.support import (
    DTYPES,
    INTS,
    assert_same,
    assert_same_storage,
    clone_layout,
    outcome,
    to_device,
)

SECONDS = float(os.environ.get("TORCH_WEBGPU_PROPERTIES", "0"))
ROUNDS = 40  # of each test, the same examples in every run, unless it runs for SECONDS
COMPUTED = (torch.float32, torch.int64, torch.int32, torch.uint8, torch.int8, torch.float16, torch.bool)


def checked(**strategies: st.SearchStrategy[Any]) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """Rounds of examples; what fails is made small and shown."""

    def decorate(test: Callable[..., None]) -> Callable[[], None]:
        def rounds() -> None:
            numbers = itertools.count(random.randrange(2**32)) if SECONDS else range(ROUNDS)
            limits = settings(max_examples=25, deadline=None, database=None, suppress_health_check=list(HealthCheck))
            end = time.monotonic() + SECONDS
            for number in numbers:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    seed(number)(limits(given(**strategies)(test)))()
                if SECONDS and time.monotonic() > end:
                    return

        rounds.__name__, rounds.__doc__ = test.__name__, test.__doc__
        return rounds

    return decorate


def values_of(count: int, dtype: torch.dtype, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    low, high = (0, 2) if dtype == torch.bool else (0, 9) if dtype == torch.uint8 else (-8, 9)
    return torch.randint(low, high, (count,), generator=generator).to(dtype)


@st.composite
def shapes(draw: st.DrawFn, most: int = 4) -> tuple[int, ...]:
    return tuple(draw(st.lists(st.integers(0, 5), max_size=most)))


@st.composite
def views(draw: st.DrawFn, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """A tensor of the shape somewhere in a larger storage: sliced, permuted or expanded dimensions, at an offset."""
    order = draw(st.permutations(range(len(shape))))
    steps = [draw(st.sampled_from((1, 1, 1, 2, 3))) for _ in shape]
    expanded = [draw(st.sampled_from((False, False, False, True))) for _ in shape]
    offset = draw(st.integers(0, 5))
    strides, extent = [0] * len(shape), 1
    for dim in order:
        if not expanded[dim]:
            strides[dim] = extent * steps[dim]
            extent *= max(shape[dim], 1) * steps[dim]
    base = values_of(offset + extent + 3, dtype, draw(st.integers(0, 99)))
    return base.as_strided(shape, strides, offset)


def broadcast_part(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts to another."""
    kept = shape[draw(st.integers(0, len(shape))) :]
    return tuple(1 if draw(st.sampled_from((False, False, True))) else size for size in kept)


UNARY: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "neg": torch.neg,
    "abs": torch.abs,
    "sign": torch.sign,
    "bitwise_not": torch.bitwise_not,
    "logical_not": torch.logical_not,
    "relu": torch.relu,
    "clone": torch.clone,
    "contiguous": torch.Tensor.contiguous,
    "square": torch.square,
    "float": torch.Tensor.float,
    "int8": lambda x: x.to(torch.int8),
    "bool": torch.Tensor.bool,
    "add number": lambda x: x + 3,
    "rsub number": lambda x: 2 - x,
    "clamp": lambda x: x.clamp(-2, 3),
    "flip": lambda x: x.flip(0),
    "transpose": lambda x: x.transpose(0, -1),
    "slice": lambda x: x[1:],
    "step": lambda x: x[..., ::2],
    "unsqueeze": lambda x: x.unsqueeze(0),
    "reshape": lambda x: x.reshape(-1),
    "cat": lambda x: torch.cat([x, x]),
    "cumsum": lambda x: x.cumsum(0, dtype=torch.int64),
    "sum": lambda x: x.sum(-1),
    "amax": lambda x: x.amax(0),
    "argmax": lambda x: x.argmax(-1),
    "any": lambda x: x.any(0),
    "tril": lambda x: x.tril(),
    "nonzero": torch.nonzero,
    "masked_select": lambda x: x.masked_select(x > 0),
    "sort": lambda x: x.sort(-1, stable=True)[1],
    "roll": lambda x: x.roll(1),
}
BINARY: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "eq": torch.eq,
    "lt": torch.lt,
    "logical_xor": torch.logical_xor,
    "bitwise_and": torch.bitwise_and,
    "where": lambda x, y: torch.where(x > 0, x, y),
    "matmul": torch.matmul,
    "atan2 sign": lambda x, y: torch.copysign(x, y),
}
INPLACE: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "add_": torch.Tensor.add_,
    "sub_": torch.Tensor.sub_,
    "mul_": torch.Tensor.mul_,
    "copy_": torch.Tensor.copy_,
    "eq_": torch.Tensor.eq_,
    "masked_fill_": lambda x, y: x.masked_fill_(y > 0, 1),
    "masked_scatter_": lambda x, y: x.masked_scatter_(x > 0, y),
    "fill_": lambda x, y: x.fill_(2),
    "zero_": lambda x, y: x.zero_(),
    "neg_": lambda x, y: x.neg_(),
    "setitem": lambda x, y: x.__setitem__(0, y),
    "set by mask": lambda x, y: x.__setitem__(x > 1, 1),
    "index_add_": lambda x, y: x.index_add_(0, torch.zeros(len(y), dtype=torch.int64, device=x.device), y),
}


def kind(error: BaseException | None) -> type:
    """NotImplementedError is a RuntimeError: of two reasons to refuse the CPU may name the other."""
    return RuntimeError if isinstance(error, RuntimeError) else type(error)


def compare(function: Callable[[], Any], moved: Callable[[], Any], message: str) -> Any:
    """Both give the same, bit by bit, or both raise the same kind of error. The CPU's result, and the device's."""
    expected, refused = outcome(function)
    actual, error = outcome(moved)
    assert kind(error) is kind(refused), f"{message}: {error!r}, but the CPU {refused!r}"
    if refused is None and isinstance(expected, torch.Tensor):
        if expected.is_floating_point():
            expected, actual = expected + 0, actual + 0  # which zero a minimum gives, the CPU leaves open
        assert_same(actual, expected, message, exact=True, strides=False)
    return expected, actual


@checked(data=st.data())
def test_chains(data: st.DataObject) -> None:
    shape = data.draw(shapes())
    x = data.draw(views(shape, data.draw(st.sampled_from(COMPUTED))))
    there = to_device(x)
    trail = f"{tuple(x.shape)} {x.stride()} {x.dtype}"
    for _ in range(data.draw(st.integers(1, 4))):
        if data.draw(st.booleans()):
            name = data.draw(st.sampled_from(sorted(UNARY)))
            trail += f" {name}"
            x, there = compare(lambda: UNARY[name](x), lambda: UNARY[name](there), trail)  # noqa: B023
        else:
            name = data.draw(st.sampled_from(sorted(BINARY)))
            other = data.draw(views(broadcast_part(data.draw, tuple(x.shape)), data.draw(st.sampled_from(COMPUTED))))
            trail += f" {name} {tuple(other.shape)} {other.stride()} {other.dtype}"
            x, there = compare(
                lambda: BINARY[name](x, other),  # noqa: B023
                lambda: BINARY[name](there, to_device(other)),  # noqa: B023
                trail,
            )
        if x is None or not x.numel() or (x.is_floating_point() and not (x.abs() < 2048).all()):
            return  # refused, or no longer exact


@checked(data=st.data())
def test_in_place_on_views(data: st.DataObject) -> None:
    """Of one storage or two, overlapping or not; what lies beside the view stays as it was."""
    shape = data.draw(shapes(3))
    dtype = data.draw(st.sampled_from(COMPUTED))
    target = data.draw(views(shape, dtype))
    name = data.draw(st.sampled_from(sorted(INPLACE)))
    if data.draw(st.booleans()):
        other = data.draw(views(broadcast_part(data.draw, shape), data.draw(st.sampled_from(COMPUTED))))
        defined = True
    else:  # the same memory
        order = data.draw(st.permutations(range(len(shape))))
        other = target.permute(order)
        # PyTorch refuses another order of elements where it can tell. Where it cannot, the result depends on which
        # element is written first, on every device.
        defined = other.stride() == target.stride()
    if name == "index_add_" and target.shape[:1] == (0,):
        return  # its index is out of range, which the CPU says of vectors alone
    if name == "masked_fill_" and any(
        stride == 0 and size > 1 for size, stride in zip(target.shape, target.stride(), strict=True)
    ):
        defined = False  # deprecated, with a warning: each element is written more than once
    message = f"{name} {shape} {target.stride()} {dtype}, {tuple(other.shape)} {other.stride()} {other.dtype}"
    target, other = clone_layout((target, other))
    moved, moved_other = to_device((target, other))
    _, refused = outcome(INPLACE[name], target, other)

    def write_and_wait() -> None:
        INPLACE[name](moved, moved_other)
        torch.webgpu.synchronize()  # what only the device sees, such as too few elements, raises here

    _, error = outcome(write_and_wait)
    assert kind(error) is kind(refused), f"{message}: {error!r}, but the CPU {refused!r}"
    if refused is None and defined:
        assert_same_storage(moved, target, message)


@checked(data=st.data())
def test_out(data: st.DataObject) -> None:
    shape = data.draw(shapes(3))
    name = data.draw(st.sampled_from(("add", "sub", "mul", "maximum", "eq", "bitwise_and")))
    function = BINARY[name]
    left = data.draw(views(shape, data.draw(st.sampled_from(DTYPES))))
    right = data.draw(views(broadcast_part(data.draw, shape), data.draw(st.sampled_from(DTYPES))))
    given_shape = shape if data.draw(st.integers(0, 4)) else data.draw(shapes(3))
    out = data.draw(views(given_shape, data.draw(st.sampled_from(DTYPES))))
    message = f"{name} {left.dtype} {right.dtype} into {out.dtype} {tuple(out.shape)} {out.stride()}"
    out = clone_layout(out)
    moved = to_device((left, right, out))
    _, refused = outcome(function, left, right, out=out)
    _, error = outcome(function, *moved[:2], out=moved[2])
    assert kind(error) is kind(refused), f"{message}: {error!r}, but the CPU {refused!r}"
    if refused is None:
        assert_same(moved[2], out, message, exact=True, strides=False)
        if left.dtype != right.dtype:
            return  # the CPU takes the strides of a cast copy, the device those of the operand, as CUDA does
        # The stride of a dimension of one element means nothing.
        strides = [[x.stride(dim) for dim in range(x.dim()) if x.size(dim) > 1] for x in (moved[2], out)]
        assert strides[0] == strides[1] or not out.numel(), f"{message}: {strides}"


NUMBERS = st.one_of(
    st.integers(-300, 300),
    st.sampled_from([s * 2**e + d for e in (7, 8, 15, 31, 32, 53, 62) for s in (1, -1) for d in (-1, 0, 1)]),
    st.sampled_from(
        (0.0, -0.0, 0.5, 1e-30, 65504.0, 65520.0, 1e5, 3.4e38, 1e39, 1e300, torch.inf, -torch.inf, torch.nan)
    ),
    st.booleans(),
)
TAKES_NUMBER: dict[str, Callable[[torch.Tensor, Any], torch.Tensor]] = {
    "add": lambda x, n: x + n,
    "rsub": lambda x, n: n - x,
    "mul": lambda x, n: x * n,
    "eq": lambda x, n: x == n,
    "lt": lambda x, n: x < n,
    "ge": lambda x, n: x >= n,
    "clamp max": lambda x, n: x.clamp(max=n),
    "clamp min": lambda x, n: x.clamp(min=n),
    "where": lambda x, n: torch.where(x > 1, x, n),
    "masked_fill": lambda x, n: x.masked_fill(x > 1, n),
    "full_like": torch.full_like,
    "setitem": lambda x, n: x.index_put((x > 1,), torch.scalar_tensor(n, dtype=x.dtype, device=x.device)),
    "alpha": lambda x, n: torch.add(x, x, alpha=n),
    "add_": lambda x, n: x.clone().add_(n),
}


@checked(dtype=st.sampled_from(DTYPES), name=st.sampled_from(sorted(TAKES_NUMBER)), number=NUMBERS)
def test_numbers(dtype: torch.dtype, name: str, number: float) -> None:
    # The CPU rounds alpha * x to a half before the sum in some of its loops, and not in others.
    assume(name != "alpha" or dtype not in (torch.float16, torch.bfloat16))
    x = torch.tensor([0, 1, 2, 3, 1, 0, 5]).to(dtype)
    function = TAKES_NUMBER[name]
    compare(lambda: function(x, number), lambda: function(to_device(x), number), f"{name} {dtype} {number!r}")


DIFFERENTIABLE: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "square": torch.square,
    "mul": lambda x: x * 3,
    "relu": torch.relu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "transpose": lambda x: x.transpose(0, -1),
    "flip": lambda x: x.flip(0),
    "slice": lambda x: x[1:],
    "sum": lambda x: x.sum(-1, keepdim=True),
    "mean": lambda x: x.mean(0),
    "cumsum": lambda x: x.cumsum(-1),
    "softmax": lambda x: x.softmax(-1),
    "cat": lambda x: torch.cat([x, x * 2]),
    "expand": lambda x: x.unsqueeze(0).expand(3, *x.shape),
    "clamp": lambda x: x.clamp(-3, 4),
    "where": lambda x: torch.where(x > 1, x, x * x),
    "norm": lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:]),
    "index": lambda x: x[torch.zeros(2, dtype=torch.int64, device=x.device)],
    "matmul": lambda x: x @ x.transpose(-1, -2),
    "inplace": lambda x: (x * 1).mul_(2),
}


@checked(data=st.data())
def test_gradients(data: st.DataObject) -> None:
    x = data.draw(views(data.draw(shapes(3)), torch.float32)) / 4
    names = data.draw(st.lists(st.sampled_from(sorted(DIFFERENTIABLE)), min_size=1, max_size=4))

    def run(leaf: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = leaf
        for name in names:
            y = DIFFERENTIABLE[name](y)
        (y * 0.5).sum().backward()
        assert leaf.grad is not None
        return y.detach(), leaf.grad

    message = f"{names} of {tuple(x.shape)} {x.stride()}"
    expected, refused = outcome(run, x.clone().requires_grad_())
    actual, error = outcome(run, to_device(x.clone()).requires_grad_())
    assert kind(error) is kind(refused), f"{message}: {error!r}, but the CPU {refused!r}"
    if refused is not None:
        return
    exact = run(x.double().requires_grad_())
    for one, other, truth in zip(actual, expected, exact, strict=True):
        # A sum that cancels has few right digits, on the CPU as well: its error says how many.
        error_of_cpu = (other - truth).nan_to_num(0, 0, 0).abs().sum().item()
        assert_same(one, other, message, rtol=1e-4, atol=1e-4 + 10 * error_of_cpu, strides=False)


@pytest.mark.parametrize("dtype", INTS[:1])
def test_the_strategies_make_what_they_promise(dtype: torch.dtype) -> None:
    """Views with steps, offsets and expanded dimensions do occur."""
    seen = set()

    @settings(max_examples=100, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(views((2, 3), dtype))
    def collect(x: torch.Tensor) -> None:
        seen.update({"offset"} if x.storage_offset() else set(), {"expanded"} if 0 in x.stride() else set())
        seen.update({"transposed"} if x.stride(0) < x.stride(1) else set(), {"step"} if x.stride(1) == 2 else set())

    collect()
    assert seen == {"offset", "expanded", "transposed", "step"}
