"""What the loads of products and convolutions do by themselves: a cast of an operand to the dtype of the result, and
with it the scale of quantized weights.

The kernels load any dtype, so a weight of int8, or of halves, is read as it lies instead of being copied to floats. A
scale that is the same along the sum stands behind the product.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch._inductor import ir
from torch._inductor.lowering import lowerings
from torch._inductor.virtualized import V

aten = torch.ops.aten
CAST = torch.ops.prims.convert_element_type.default

# The dtypes that a cast takes to another one without rounding.
_EXACT = {
    torch.float32: (torch.float16, torch.bfloat16, torch.int8, torch.uint8),
    torch.float16: (torch.int8, torch.uint8),
    torch.bfloat16: (torch.int8, torch.uint8),
}


@dataclasses.dataclass
class Operand:
    """An operand before its cast, and the scales of its elements: tensors of one element along the sum."""

    source: Any
    scales: list[Any] = dataclasses.field(default_factory=list)

    def map(self, function: Callable[[Any], Any]) -> Operand:
        return Operand(function(self.source), [function(scale) for scale in self.scales])


def before_cast(node: Any, *axes: int) -> Operand | None:
    """The operand whose cast, and perhaps scale, `node` is; the product sums along its dimensions `axes`."""
    if not isinstance(node, torch.fx.Node) or not isinstance(node.meta.get("val"), torch.Tensor):
        return None
    value, args = node.meta["val"], cast(tuple[Any, ...], node.args)
    if node.target is CAST:
        return Operand(operands_of(node)[0]) if is_exact(node) else None
    if node.target is aten.permute.default:
        dims = [int(dim) % value.dim() for dim in args[1]]
        found = before_cast(args[0], *(dims[axis] for axis in axes))
        return found and found.map(lambda x: lowerings[aten.permute](x, dims))
    if node.target is aten.mul.Tensor:
        for factor, scale in (args, reversed(args)):
            if not is_scale_along(scale, value, axes):
                continue
            found = before_cast(factor, *axes)
            if found is not None and factor.meta["val"].dim() == value.dim():
                box = operands_of(node)[args.index(scale)]
                missing = value.dim() - len(box.get_size())
                found.scales.append(lowerings[aten.view](box, [1] * missing + [*box.get_size()]))
                return found
    return None


def is_exact(node: torch.fx.Node) -> bool:
    """Whether a cast rounds nothing, on the device."""
    to, inner = node.meta["val"], cast(torch.fx.Node, node.args[0]).meta["val"]
    return inner.dtype in _EXACT.get(to.dtype, ()) and inner.device.type == to.device.type == "webgpu"


def operands_of(node: torch.fx.Node) -> tuple[Any, ...]:
    return _operands()[node]


def _operands() -> dict[torch.fx.Node, tuple[Any, ...]]:
    kept: dict[torch.fx.Node, tuple[Any, ...]] = V.graph.__dict__.setdefault("_webgpu_operands", {})
    return kept


def keeping_operands(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Lowers a cast or a product with a scale, whose operands Inductor forgets when they have been lowered."""
    _operands()[V.graph.current_node] = args
    return original(*args, **kwargs)


def is_scale_along(node: Any, value: torch.Tensor, axes: Sequence[int]) -> bool:
    """Whether a factor of `value` is the same for all that is summed along `axes`."""
    if not isinstance(node, torch.fx.Node) or not isinstance(node.meta.get("val"), torch.Tensor):
        return False
    scale = node.meta["val"]
    sizes = [1] * (value.dim() - scale.dim()) + [*ir.convert_shape_to_inductor(scale.shape)]
    is_same_along = all(V.graph.sizevars.statically_known_equals(sizes[axis], 1) for axis in axes)
    return scale.device.type == "webgpu" and scale.dtype is value.dtype and is_same_along
