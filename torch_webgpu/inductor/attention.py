"""scaled_dot_product_attention as a template where pointwise ops take its result: eager's kernels hand on each element.

What dropout makes random, what a binding does not hold, and what no pointwise op takes is eager's op.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._inductor import ir
from torch._inductor.lowering import empty_strided, lowerings
from torch._inductor.select_algorithm import realize_inputs
from torch._inductor.virtualized import V

from torch_webgpu.inductor import launch
from torch_webgpu.inductor.pages import fit, fits
from torch_webgpu.inductor.templates import is_worth_a_template, make_template

aten = torch.ops.aten
ATTENTION = aten._scaled_dot_product_fused_attention_overrideable.default
OUT, LOG_SUM, SEED, OFFSET = 0, 1, 6, 7  # of the op's nine results
KERNEL_BINDINGS = 5  # query, key, value, mask and log_sum, which may be the kernel's own
MOST_BINDINGS = 15  # that the key of a kernel can number


def results_of(node: torch.fx.Node) -> dict[int, torch.fx.Node]:
    return {user.args[1]: user for user in node.users if user.target is operator.getitem}  # type: ignore[misc]


def order_of(out: torch.fx.Node) -> list[int]:
    """The dimensions of the result as they lie in memory: as all users turn them, or else as eager has them."""
    turns: list[Any] = [user.args[1] if user.target is aten.permute.default else None for user in out.users]
    if turns[0] is not None and all(turn == turns[0] for turn in turns):
        return [dim % 4 for dim in turns[0]]
    strides = ir.convert_shape_to_inductor(out.meta["val"].stride())
    return list(reversed(ir.get_fill_order(strides, V.graph.sizevars.shape_env)))


def _attention(
    original: Callable[..., Any], query: Any, key: Any, value: Any, mask: Any = None, dropout: float = 0.0,
    causal: bool = False, wants_debug_mask: bool = False, *, scale: float | None = None
) -> Any:  # fmt: skip
    results = results_of(V.graph.current_node)
    sizes = [*query.get_size()[:3], value.get_size()[3]]
    operands = [x for x in (query, key, value, mask) if x is not None]
    if (
        any(x.get_device().type != "webgpu" for x in operands)
        or dropout
        or wants_debug_mask
        or OUT not in results
        or not is_worth_a_template(results[OUT])
        or not fit(*operands)
        or not fits(sizes, torch.float32)
    ):
        return original(query, key, value, mask, dropout, causal, wants_debug_mask, scale=scale)
    log_sum = None
    if LOG_SUM in results:
        log_sum = empty_strided(sizes[:3], None, dtype=torch.float32, device=query.get_device())
    out = attention_template(operands, log_sum, sizes, order_of(results[OUT]), mask is not None, causal, scale)
    zero = None
    if SEED in results or OFFSET in results:
        zero = lowerings[aten.full.default]([], 0, dtype=torch.int64, device=query.get_device())
    return out, log_sum, None, None, sizes[2], key.get_size()[2], zero, zero, None


def attention_template(
    operands: Sequence[Any], log_sum: Any, sizes: Sequence[Any], order: Sequence[int], has_mask: bool, causal: bool,
    scale: float | None
) -> Any:  # fmt: skip
    inputs = [realize_inputs(x) for x in operands] + ([] if log_sum is None else [log_sum])
    layout = ir.FixedLayout(operands[0].get_device(), operands[0].get_dtype(), [sizes[dim] for dim in order])
    present = (True, True, True, has_mask, log_sum is not None)
    given = (repr(tuple(order)), repr(bool(causal)), repr(None if scale is None else float(scale)))
    out = make_template("attention", layout, inputs, given, None, present, [] if log_sum is None else [log_sum])
    beyond = max(launch.most_bindings() - MOST_BINDINGS, 0)
    out.data.data.hidden_bindings = KERNEL_BINDINGS - len(inputs) + beyond
    return lowerings[aten.permute](out, [list(order).index(dim) for dim in range(4)])


def register() -> None:
    original = lowerings[ATTENTION]
    lowerings[ATTENTION] = functools.wraps(original)(functools.partial(_attention, original))
