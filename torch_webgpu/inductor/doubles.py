"""float64 inside of a graph: tolerances and scalars that PyTorch's own functions make in float64 compute as float32."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

log = logging.getLogger(__name__)


def narrow(gm: torch.fx.GraphModule) -> None:
    """A graph that takes or gives float64 is left as it is: its ops on float64 run on the CPU, as in eager code."""
    wide = [node for node in gm.graph.nodes if _is_double(node)]
    ends = {node for node in gm.graph.nodes if node.op in ("placeholder", "get_attr")}
    ends.update(gm.graph.output_node().all_input_nodes)
    if not wide or not ends.isdisjoint(wide):
        return
    for node in wide:
        log.info("%s computes in float32, not float64", node.target)
        node.args, node.kwargs = tree_map(_float32, (node.args, node.kwargs))
        with _fake_mode(node):
            node.meta["val"] = tree_map(_as_float32, node.meta["val"])
    gm.recompile()


def joint_graph_passes(original: Callable[..., Any], gm: torch.fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
    """The first passes execute constants of the graph, which in float64 would be ops on the CPU."""
    narrow(gm)
    return original(gm, *args, **kwargs)


def _is_double_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype is torch.float64 and value.device.type == "webgpu"


def _is_double(node: torch.fx.Node) -> bool:
    return any(map(_is_double_tensor, tree_leaves(node.meta.get("val"))))


def _float32(value: Any) -> Any:
    return torch.float32 if value is torch.float64 else value


def _as_float32(value: Any) -> Any:
    return value.to(torch.float32) if _is_double_tensor(value) else value


def _fake_mode(node: torch.fx.Node) -> Any:
    return next(value for value in tree_leaves(node.meta["val"]) if _is_double_tensor(value)).fake_mode
