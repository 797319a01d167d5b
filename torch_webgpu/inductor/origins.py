"""The comment above a kernel in the generated module: lines of the user's program, and the ops they became."""

from __future__ import annotations

import os
import re
from typing import Any

import torch
from torch._inductor.utils import aggregate_origins, get_kernel_metadata

FRAME = re.compile(r'^File "(.+)", line (\d+), in (.+)$')
PACKAGES = (os.path.dirname(torch.__file__) + os.sep,)


def comment(nodes: Any, wrapper: Any) -> str:
    """For the nodes of a kernel, or one that calls a kernel."""
    origins, details = get_kernel_metadata(nodes, wrapper)
    lines = "".join(f"{wrapper.comment} {line}\n" for line in source_lines(nodes))
    return f"{lines}{origins}\n{details}"


def source_lines(nodes: Any) -> list[str]:
    """In the order of the graph: the innermost line outside of PyTorch that made each op."""
    origins = [node for node in aggregate_origins(nodes) if node.op == "call_function"]
    places = {node: i for graph in {node.graph for node in origins} for i, node in enumerate(graph.nodes)}
    origins.sort(key=lambda node: places[node])
    found = (_line_of(node.meta.get("stack_trace") or node.stack_trace or "") for node in origins)
    return list(dict.fromkeys(line for line in found if line))


def _line_of(trace: str) -> str:
    lines = [line.strip() for line in trace.strip().split("\n")]
    frames = []
    for line, code in zip(lines, [*lines[1:], ""], strict=True):
        if match := FRAME.match(line):
            file, number, function = match.groups()
            frames.append((file, f"{file}:{number} in {function}: {'' if FRAME.match(code) else code}"))
    outside = [text for file, text in frames if not file.startswith(PACKAGES)]
    return outside[-1] if outside else frames[-1][1] if frames else ""
