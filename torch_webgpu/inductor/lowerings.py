"""What lowerings of Inductor do differently for the device: `registration` puts these around the originals."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import sympy
import torch
from torch._inductor import config, ir, lowering
from torch._inductor.virtualized import V, ops

from torch_webgpu.inductor import launch

log = logging.getLogger(__name__)


def make_reduction_inner(original: Callable[..., Any], x: Any, **kwargs: Any) -> Any:
    """Argmax over several dimensions names an element by its number in them, whichever order a kernel takes them in:
    the original says so to Triton and C++ alone."""
    made = original(x, **kwargs)
    sizes, load = made["reduction_ranges"], made["inner_fn"]
    if kwargs.get("reduction_type") not in ("argmax", "argmin") or len(sizes) < 2 or x.get_device().type != "webgpu":
        return made

    def load_numbered(index: Any, reduced: Any) -> Any:
        number = sympy.S.Zero
        for i, size in zip(reduced, sizes, strict=True):
            number = number * size + i
        return load(index, reduced), V.ops.index_expr(sympy.expand(number), torch.int64)

    return {**made, "inner_fn": load_numbered}


# Beyond this, sums of one element after the other lose digits, and few rows leave the device idle.
LONGEST_SCAN = 4096


def scan(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Rows of a length that is not known to be short are the eager kernel's, which splits them."""
    size = kwargs["size"][kwargs["axis"]]
    is_long = not V.graph.sizevars.statically_known_leq(size, LONGEST_SCAN)
    if kwargs["device"].type == "webgpu" and is_long and kwargs.get("can_fallback_to_aten", True):
        log.info("a scan runs eagerly: rows of %s elements are long", size)
        return [None] * len(kwargs["dtypes"])
    return original(*args, **kwargs)


# What the memory of a workgroup holds.
LONGEST_SORT = 1024


def sort(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Rows that are not known to be short are the eager kernel's, and on software adapters all: those merge runs faster
    than they exchange in workgroup memory."""
    if kwargs["device"].type != "webgpu":
        return original(*args, **kwargs)
    size = kwargs["size"][kwargs["axis"]]
    is_short = V.graph.sizevars.statically_known_leq(size, LONGEST_SORT)
    if launch.target()["software"] or not is_short:
        reason = f"rows of {size} elements are long" if not is_short else "software adapters merge faster"
        log.info("a sort runs eagerly: %s", reason)
        return [None] * len(kwargs["dtypes"])
    with config.patch({"triton.decompose_sort_ops": True}):  # or else rows have at most 512 elements
        return original(*args, **kwargs)


def logcumsumexp(original: Callable[..., Any], x: Any, dim: int) -> Any:
    """The largest exponent so far and the sum of exponentials below it, as eager's kernel has them: the logarithm that
    the original takes in each step would round in each step."""
    if x.get_device().type != "webgpu" or not x.get_size() or not x.get_dtype().is_floating_point:
        return original(x, dim)

    def combine(first: Any, second: Any) -> Any:
        (a, sum_a), (b, sum_b) = first, second
        most = ops.maximum(a, b)

        def share(exponent: Any) -> Any:
            one = ops.constant(1.0, torch.float32)
            return ops.where(ops.eq(exponent, most), one, ops.exp(ops.sub(exponent, most)))

        return most, ops.add(ops.mul(sum_a, share(a)), ops.mul(sum_b, share(b)))

    def finish(most: Any, total: Any) -> Any:
        has_no_sum = ops.logical_or(ops.isnan(most), ops.isinf(most))
        return ops.where(has_no_sum, most, ops.add(most, ops.log(total)))

    given = lowering._make_scan_inner(x, axis=dim, dtype=torch.float32)
    given["dtypes"] *= 2
    given["inner_fns"] += (lambda index: ops.constant(1.0, torch.float32),)
    most, total = ir.Scan.create(**given, combine_fn=combine)
    if most is None:
        return original(x, dim)
    return lowering.to_dtype(lowering.make_pointwise(finish)(most, total), x.get_dtype())


HALVES = (torch.float16, torch.bfloat16)


def index_put(original: Callable[..., Any], x: Any, indices: Any, values: Any, accumulate: bool, *rest: Any,
              **options: Any) -> Any:  # fmt: skip
    if not accumulate or not is_half(x):
        return original(x, indices, values, accumulate, *rest, **options)
    return in_float32(x, values, lambda sums, terms: original(sums, indices, terms, True, *rest, **options))


def scatter_reduce(original: Callable[..., Any], x: Any, dim: int, index: Any, source: Any, reduce: Any,
                   **options: Any) -> Any:  # fmt: skip
    if reduce != "sum" or not is_half(x):
        return original(x, dim, index, source, reduce, **options)
    return in_float32(x, source, lambda sums, terms: original(sums, dim, index, terms, "sum", **options))


def is_half(x: Any) -> bool:
    return x.get_device().type == "webgpu" and x.get_dtype() in HALVES


def in_float32(x: Any, terms: Any, add: Callable[[Any, Any], Any]) -> Any:
    """Adds terms to `x`, which is changed: sums of halves would be rounded with each term."""
    sums = lowering.to_dtype(x, torch.float32)
    if isinstance(terms, ir.TensorBox):
        terms = lowering.to_dtype(terms, torch.float32)
    return lowering.mutate_to(x, lowering.to_dtype(add(sums, terms), x.get_dtype()))


def scan_splits(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Kernels of split scans are Triton's alone."""
    if kwargs["device"].type == "webgpu":
        return ir.ReductionHint.DEFAULT, 1
    return original(*args, **kwargs)


MOST_PARTS = 1024


def parts_of_columns(
    original: Callable[..., int], device: Any, reduction_numel_hint: int, numel_hint: int, inner_reduction: bool
) -> int:
    """Into how many parts the rows are cut where outputs lie side by side: as many as keep an adapter's lanes busy, of
    which each takes four columns where it can. Preferably parts of one length, since shorter ones need masks."""
    if device.type != "webgpu" or inner_reduction:
        return original(device, reduction_numel_hint, numel_hint, inner_reduction)
    lanes, fewest_rows = (512, 512) if launch.target()["software"] else (1 << 16, 128)
    taken = max(1, numel_hint // 4 if numel_hint % 4 == 0 else numel_hint)
    most = max(1, min(lanes // taken, reduction_numel_hint // fewest_rows, MOST_PARTS))
    return next((parts for parts in range(most, most // 2, -1) if reduction_numel_hint % parts == 0), most)
