"""PyTorch's own samples, from the OpInfos in the wheel, on the device against the CPU."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import BinaryUfuncInfo, OpInfo, SampleInput
from torch.utils._pytree import tree_leaves, tree_map

from tests.support import (
    DEVICE,
    DTYPES,
    STORED,
    assert_same,
    clone_layout,
    fallback_mode,
    on_device,
    outcome,
    to_device,
)

# Samples that hold, or lead to, a dtype that the device does not store are not for it.
HALVES = (torch.float16, torch.bfloat16)
# Ops whose result has no values yet, or random ones: shape, dtype, strides and device are compared. That the numbers
# are right is the business of test_random.py.
UNINITIALIZED = ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided")
RANDOM = (
    *("bernoulli", "cauchy", "exponential", "geometric", "log_normal", "multinomial", "normal", "rand_like", "randint"),
    *("randint_like", "randn", "randn_like", "uniform", "nn.functional.alpha_dropout", "nn.functional.dropout"),
    *("nn.functional.dropout2d", "nn.functional.dropout3d", "nn.functional.feature_alpha_dropout"),
    *("nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d", "nn.functional.rrelu"),
    "svd_lowrank",  # of a random part of the matrix, where that has a higher rank
)
# PyTorch wants the arguments behind the first on the CPU, for tensors of every device.
ARGUMENTS_OF_THE_HOST = ("tensor_split",)


def full_name(op: OpInfo) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


@functools.cache
def opinfos() -> dict[str, OpInfo]:
    return {full_name(op): op for op in op_db}


@dataclass
class Call:
    """The arguments of one call, on the CPU and on the device."""

    sample: SampleInput
    cpu: tuple[Any, tuple[Any, ...], dict[str, Any]]
    device: tuple[Any, tuple[Any, ...], dict[str, Any]]

    def on(self, where: str, function: Callable[..., Any], **more: Any) -> Any:
        first, args, kwargs = self.cpu if where == "cpu" else self.device
        if where == "cpu" or tensors(self.device):
            return function(first, *args, **kwargs, **more)
        with torch.device(DEVICE):  # for a factory that is not told where
            return function(first, *args, **kwargs, **more)


def tensors(values: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)]


def storable(values: Any) -> bool:
    """Whether the device has the dtypes of all tensors and dtype arguments, and their layout."""
    return all(
        (leaf.dtype in STORED and leaf.layout == torch.strided) if isinstance(leaf, torch.Tensor) else leaf in STORED
        for leaf in tree_leaves(values)
        if isinstance(leaf, (torch.Tensor, torch.dtype))
    )


def move(values: Any) -> Any:
    """To the device: tensors with their layout, generators, and what names the CPU as the place of the result."""

    def one(value: Any) -> Any:
        return torch.device(DEVICE) if value in ("cpu", torch.device("cpu")) else value

    return to_device(tree_map(lambda x: one(x) if isinstance(x, (str, torch.device)) else x, values))


def calls(samples: Iterator[SampleInput], op: OpInfo) -> Iterator[Call]:
    for sample in samples:
        values = (sample.input, tuple(sample.args), dict(sample.kwargs))
        if storable(values):
            moved = move(values)
            yield Call(sample, values, (moved[0], *values[1:]) if op.name in ARGUMENTS_OF_THE_HOST else moved)


def samples_of(op: OpInfo, dtype: torch.dtype, kind: str = "samples", grad: bool = False) -> Iterator[Call]:
    torch.manual_seed(0)
    make = op.reference_inputs if kind == "reference" else op.sample_inputs
    samples = make("cpu", dtype, requires_grad=grad)
    if isinstance(op, BinaryUfuncInfo):  # two numbers are no work for a device
        samples = (sample for sample in samples if tensors((sample.input, sample.args)))
    return calls((sample.noncontiguous() if kind == "noncontiguous" else sample for sample in samples), op)


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


# Which of several equal elements an index names is left open: these are compared by what the index selects.
# Op: (which result is the index, position of `dim` among the arguments, position of `keepdim` or None)
TIES: dict[str, tuple[int, int, int | None]] = {
    "sort": (1, 0, None),
    "msort": (1, 0, None),
    "argsort": (0, 0, None),
    "topk": (1, 1, None),
    "kthvalue": (1, 1, 2),
    "mode": (1, 0, 1),
}


def selected(op: OpInfo, where: tuple[Any, tuple[Any, ...], dict[str, Any]], result: Any) -> Any:
    """The result with its indices replaced by the elements they name."""
    source, args, kwargs = where
    which, dim_at, keepdim_at = TIES[op.name]
    results = [result] if isinstance(result, torch.Tensor) else list(result)
    if op.name == "msort" or source.dim() == 0 or len(results) <= which:  # values alone have a gradient
        return result
    dim = kwargs.get("dim", args[dim_at] if len(args) > dim_at else -1)
    kept = keepdim_at is None or kwargs.get("keepdim", len(args) > keepdim_at and args[keepdim_at])
    index = results[which] if kept else results[which].unsqueeze(dim)
    results[which] = source.detach().gather(dim, index)
    return tuple(results)


def has_values(op: OpInfo, call: Call) -> bool:
    """Whether the result is the same in every run."""
    if op.name == "nn.functional.multi_head_attention_forward":
        return call.sample.args[9] == 0 or not call.sample.kwargs.get("training", True)
    return op.name not in (*UNINITIALIZED, *RANDOM) and not call.sample.kwargs.get("dropout_p")


def as_float32(values: Any) -> Any:
    def widen(value: Any) -> Any:
        return value.detach().float() if isinstance(value, torch.Tensor) and value.dtype in HALVES else value

    return tree_map(widen, values)


def rounded_once(op: OpInfo, call: Call, expected: Any) -> Any:
    """The CPU's result of float32 arithmetic, rounded to the dtype of `expected`; its own kernels round each step."""
    first, args, kwargs = as_float32(call.cpu)
    result = op.op(first, *args, **kwargs)
    return tree_map(lambda x, y: x.to(y.dtype) if isinstance(x, torch.Tensor) else x, result, expected)


def compare(
    op: OpInfo, call: Call, actual: Any, expected: Any, message: str, tolerance: dict[str, float], strides: bool = True
) -> None:
    """A half that is float32's result rounded once is right too: the CPU rounds more often, and is not there."""
    try:
        compare_to(op, call, actual, expected, message, tolerance, strides)
    except AssertionError:
        if not any(x.dtype in HALVES for x in tensors(expected)):
            raise
        better, refused = outcome(rounded_once, op, call, expected)
        if refused is not None:
            raise
        compare_to(op, call, actual, better, message, tolerance, False, ties=False)


def compare_to(
    op: OpInfo,
    call: Call,
    actual: Any,
    expected: Any,
    message: str,
    tolerance: dict[str, float],
    strides: bool,
    ties: bool = True,
) -> None:
    def blank(value: Any) -> Any:
        return torch.zeros_like(value) if isinstance(value, torch.Tensor) else value

    if not has_values(op, call):
        actual, expected = (tree_map(blank, x) for x in (actual, expected))
    elif op.name in TIES and ties and tensors(expected)[0].shape == tensors(actual)[0].shape:
        actual, expected = selected(op, call.device, actual), selected(op, call.cpu, expected)
    assert_same(actual, expected, message, strides=strides, **tolerance)


def describe(call: Call) -> str:
    return call.sample.summary().removeprefix("SampleInput")


ONLY_STORED = frozenset(STORED) - {*DTYPES, torch.complex64}


def is_typed(leaf: Any) -> bool:
    return isinstance(leaf, (torch.Tensor, torch.dtype))


@contextlib.contextmanager
def running(native: bool | None, *values: Any) -> Iterator[list[Any]]:
    """On the device alone; if not `native`, part of it may run on the CPU. None: where a dtype is only stored. Every op
    comes here, those whose result depends on values among them, so the host may wait."""
    if native is None:
        native = ONLY_STORED.isdisjoint(getattr(leaf, "dtype", leaf) for leaf in tree_leaves(values) if is_typed(leaf))
    with on_device(None, waits=None) if native else fallback_mode("quiet") as results:
        yield [] if results is None else results


def check_forward(op: OpInfo, call: Call, tolerance: dict[str, float], native: bool | None = None) -> bool:
    """One call against the CPU, which may refuse; False when the CPU has no result that the device can hold."""
    with quietly():
        expected, refused = outcome(call.on, "cpu", op.op)
        if refused is not None:
            with fallback_mode("quiet"):
                error = outcome(call.on, DEVICE, op.op)[1] or outcome(torch.webgpu.synchronize)[1]
            assert isinstance(error, type(refused)), f"{describe(call)}: {error!r}, but the CPU {refused!r}"
            return False
        if not storable(expected):
            return False
        with running(native, call.cpu, expected) as results:
            results.append(call.on(DEVICE, op.op))
    compare(op, call, results[0], expected, describe(call), tolerance)
    return True


def check_inplace(op: OpInfo, call: Call, tolerance: dict[str, float]) -> None:
    if call.sample.broadcasts_input:
        return
    with quietly():
        expected, refused = outcome(call.on, "cpu", lambda x, *a, **k: op.inplace_variant(clone_layout(x), *a, **k))
        target = to_device(clone_layout(call.cpu[0]))
        with running(None, call.cpu):
            actual, error = outcome(call.on, DEVICE, lambda _, *a, **k: op.inplace_variant(target, *a, **k))
    if refused is not None:
        assert isinstance(error, type(refused)), f"{describe(call)}: {error!r}, but the CPU {refused!r}"
        return
    if error is not None:
        raise error
    compare(op, call, actual, expected, describe(call), tolerance)
    compare(op, call, target, expected, describe(call), tolerance)


def check_out(op: OpInfo, call: Call, tolerance: dict[str, float]) -> None:
    with quietly():
        expected, refused = outcome(call.on, "cpu", op.op)
        if refused is not None or not storable(expected) or not tensors(expected):
            return
        for name, shape in (("right", lambda x: torch.zeros_like(x)), ("to resize", lambda x: x.new_zeros(0))):
            wanted = tree_map(lambda x: shape(x.detach()), expected)  # noqa: B023
            moved = to_device(wanted)
            _, refused = outcome(call.on, "cpu", op.op, out=wanted)
            with running(None, call.cpu, expected) as results:
                result, error = outcome(call.on, DEVICE, op.op, out=moved)
                results.append(result)
            message = f"out= {name} {describe(call)}"
            assert (error is None) == (refused is None), f"{message}: {error!r}, but the CPU {refused!r}"
            if error is None:
                compare(op, call, moved, wanted, message, tolerance)


def gradients(op: OpInfo, call: Call, where: str, seeds: list[torch.Tensor] | None) -> tuple[Any, list[torch.Tensor]]:
    inputs = [x for x in tensors(call.cpu if where == "cpu" else call.device) if x.requires_grad]
    result = call.on(where, op.op)
    if call.sample.output_process_fn_grad is not None:
        result = call.sample.output_process_fn_grad(result)
    outputs = [x for x in tensors(result) if x.requires_grad]
    if seeds is None:
        generator = torch.Generator().manual_seed(0)
        seeds = [torch.randn(x.shape, dtype=x.dtype, generator=generator) for x in outputs]
    given = seeds if where == "cpu" else to_device(seeds)
    if not outputs or not inputs:
        return [], seeds
    return list(torch.autograd.grad(outputs, inputs, given, allow_unused=True)), seeds


def check_gradients(op: OpInfo, call: Call, tolerance: dict[str, float], native: bool | None = None) -> None:
    with quietly():
        (cpu, refused) = outcome(gradients, op, call, "cpu", None)
        if refused is not None:
            with fallback_mode("quiet"):
                error = outcome(gradients, op, call, DEVICE, None)[1]
            assert isinstance(error, type(refused)), f"{describe(call)}: {error!r}, but the CPU {refused!r}"
            return
        expected, seeds = cpu
        with running(native, call.cpu, expected) as results:
            results.append(gradients(op, call, DEVICE, seeds)[0])
    # autograd promises no strides
    compare(op, call, results[0], expected, f"gradient {describe(call)}", tolerance, strides=False)
