"""How much a kernel does per workgroup: few fat workgroups on software adapters, many on GPUs."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import sympy
from torch._inductor.virtualized import V
from torch.utils._sympy.functions import FloorDiv

from torch_webgpu import _C

MOST_GROUPS = 65535


@functools.cache
def target() -> dict[str, Any]:
    return _C.target()


@functools.cache
def most_bindings() -> int:
    limits: Any = _C.device_properties()["limits"]
    return min(int(limits["maxStorageBuffersPerShaderStage"]), 32)  # a kernel says in 32 bits which it only reads


def up(value: int, by: int) -> int:
    return (value + by - 1) // by


def chunks(steps: int, workgroup: int, cost: int = 1) -> tuple[int, int]:
    """Steps per workgroup and workgroups, as chunks_of() in csrc/families/launch.cpp."""
    most = min(max(steps * cost // 256, 1), 16) if target()["software"] else MOST_GROUPS
    groups = min(up(steps, workgroup), most)
    chunk = up(up(steps, max(groups, 1)), workgroup) * workgroup
    return max(chunk, 1), up(steps, max(chunk, 1))


@dataclasses.dataclass
class Plan:
    """The steps of a launch, cut into chunks of one workgroup each."""

    steps: sympy.Expr
    unit: int  # a chunk is a multiple of this
    workgroup: int
    cost: sympy.Expr = sympy.S.One

    @classmethod
    def elements(cls, numel: sympy.Expr, per_step: int, cost: sympy.Expr = sympy.S.One) -> Plan:
        workgroup = target()["workgroup"]
        steps = numel if per_step == 1 else FloorDiv(numel + per_step - 1, per_step)
        return cls(V.graph.sizevars.simplify(steps), workgroup, workgroup, cost)

    @property
    def is_dynamic(self) -> bool:
        return not (isinstance(self.steps, sympy.Integer) and isinstance(self.cost, sympy.Integer))

    @property
    def chunk_text(self) -> str:
        return "chunk" if self.is_dynamic else str(chunks(int(self.steps), self.unit, int(self.cost))[0])

    def call_arguments(self, tensors: str, words: list[str], printed: Callable[[sympy.Expr], str]) -> list[str]:
        """What the generated module passes: everything that is known is a constant there."""
        if self.is_dynamic:
            steps = f"({printed(self.steps)}, {self.unit}, {printed(self.cost)})"
            return [tensors, f"({', '.join(words)}{',' if words else ''})", steps]
        groups = chunks(int(self.steps), self.unit, int(self.cost))[1]
        return [tensors, f"({', '.join(words)}{',' if words else ''})", f"({groups}, 1, 1)", "True"]
