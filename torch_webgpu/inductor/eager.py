"""What runs as an eager kernel between two generated ones, with the reason in the log."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from typing import Any

import torch

from torch_webgpu.inductor import pages
from torch_webgpu.inductor.types import STORED

log = logging.getLogger(__name__)

# Eager ops of these names draw from the generator: a backward that computes them again would get other numbers.
_RANDOM = {torch.ops.prims.inductor_random.default, torch.ops.prims.inductor_randint.default}

# Ops whose bodies the code generator refused while the current graph was compiled.
_refused: dict[Any, str] = {}


class Unprintable(NotImplementedError):
    """A loop body that cannot be printed, and the ops of the graph that it was made of."""

    def __init__(self, ops: list[Any], reason: str) -> None:
        super().__init__(f"{', '.join(map(str, ops))}: {reason}")
        self.ops, self.reason = ops, reason


def refuses(tensor: torch.Tensor, op: Any) -> bool:
    """Whether an op with such an operand stays eager. Inductor asks before it lowers the op."""
    if tensor.dtype not in STORED:
        log.info("%s runs eagerly: %s is no dtype of kernels", op, tensor.dtype)
        return True
    if pages.refuses(tensor):
        log.info("%s runs eagerly: indices of kernels do not reach %s elements", op, tensor.numel())
        return True
    if op in _refused:
        log.info("%s runs eagerly: %s", op, _refused[op])
        return True
    return False


@contextlib.contextmanager
def naming_ops(node: Any) -> Iterator[None]:
    """While a node of the scheduler is printed: says of which ops it was made if that fails."""
    try:
        yield
    except Unprintable:
        raise
    except NotImplementedError as error:
        raise Unprintable(ops_of(node), str(error) or "no formula") from error


def ops_of(node: Any) -> list[Any]:
    """The ops of the graph that a node of the scheduler computes."""
    origins = getattr(node.node, "origins", ())
    return [origin.target for origin in origins if isinstance(origin.target, torch._ops.OpOverload)]


def until_printable(compile_graph: Callable[[], Any]) -> Any:
    """Compiles a graph, and once more for each refusal, with the ops of that body as eager ones."""
    try:
        while True:
            try:
                return compile_graph()
            except Unprintable as refusal:
                fresh = set(refusal.ops) - set(_refused) - _RANDOM
                if not fresh:
                    raise
                log.info("compiling again: %s", refusal)
                _refused.update(dict.fromkeys(fresh, refusal.reason))
    finally:
        _refused.clear()
