"""Scans (cumsum, cummax, associative_scan): a lane walks its row, or the lanes of a workgroup walk one row together.

A workgroup takes as many neighbours of the row as it has lanes. Each lane joins its element with those in front of it
in log2(lanes) rounds, and then with what all elements before them gave, the carry. All lanes must take part in every
round: the loop over the row has the same number of steps for each, and what lies behind the row's end is not stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._inductor.codegen.common import IndentedBuffer
from torch.utils._sympy.value_ranges import ValueRanges

from torch_webgpu.inductor import launch
from torch_webgpu.inductor.reductions import Reductions
from torch_webgpu.inductor.types import COMPUTE, wgsl_type
from torch_webgpu.inductor.values import Value, as_compute

Combine = Callable[[tuple[Any, ...], tuple[Any, ...]], tuple[Any, ...]]


class Scans(Reductions):
    def scan(self, dtypes: tuple[torch.dtype, ...], combine: Combine, values: tuple[Any, ...]) -> tuple[Any, ...]:
        name, computes = self._join(dtypes, combine, values)
        given = ", ".join(as_compute(value, compute) for value, compute in zip(values, computes, strict=True))
        key = f"{name}({given})"
        if key not in self.scanned:
            self.scanned[key] = self._scan(name, key, dtypes, computes)
        return self.scanned[key]

    def _scan(self, name: str, own: str, dtypes: tuple[torch.dtype, ...], computes: list[str]) -> tuple[Any, ...]:
        carry = f"carry{next(self.serial)}"
        self.before_row.writeline(f"var {carry}: {name};")
        if self.by_lane:
            join = f"if ({self.row.name} == 0) {{ {carry} = {own}; }} else {{ {carry} = {name}_join({carry}, {own}); }}"
            self.compute.writeline(join)
            result = carry
        else:
            self.uses_subgroups = launch.target()["subgroup"] == self.row_workgroup
            printed = _by_subgroup if self.uses_subgroups else _by_memory
            self.library.define(f"{name}_across", printed(name, computes, self.row_workgroup))
            result = f"scan{next(self.serial)}"
            self.compute.writeline(f"let {result} = {name}_across({own}, &{carry}, step == 0, lane);")
        return tuple(
            self._field(f"{result}.f{i}", dtype, compute)
            for i, (dtype, compute) in enumerate(zip(dtypes, computes, strict=True))
        )

    def _field(self, text: str, dtype: torch.dtype, compute: str) -> Value:
        value = self.cse.newvar(dtype=torch.float32 if dtype.is_floating_point else dtype, shape=())
        value.compute = compute
        self.compute.writeline(f"let {value} = {text};")
        return value

    def _join(self, dtypes: Sequence[torch.dtype], combine: Combine, values: Sequence[Any]) -> tuple[str, list[str]]:
        """A struct of the values and the function that joins two, named after its text. Indices that are known to fit
        stay narrow, if what the function makes of them does."""
        wide = [COMPUTE[dtype] for dtype in dtypes]
        narrow = [value.compute for value in values]
        body, results = self._combined(dtypes, combine, narrow)
        if any(result.compute != compute for result, compute in zip(results, narrow, strict=True)):
            narrow = wide
            body, results = self._combined(dtypes, combine, wide)
        joined = ", ".join(as_compute(result, compute) for result, compute in zip(results, narrow, strict=True))
        text = f"{body}STRUCT({joined})"
        name = self.joins.setdefault(text, f"Scan{len(self.joins)}")
        members = ", ".join(f"f{i}: {wgsl_type(compute)}" for i, compute in enumerate(narrow))
        self.library.define(name, f"struct {name} {{ {members} }}")
        self.library.define(
            f"{name}_join", f"fn {name}_join(a: {name}, b: {name}) -> {name} {{\n{body}  return {name}({joined});\n}}"
        )
        return name, narrow

    def _combined(self, dtypes: Sequence[torch.dtype], combine: Combine, computes: list[str]) -> tuple[str, Any]:
        """The lines of the function, whose variables nothing outside of it sees."""

        def operands(side: str) -> tuple[Value, ...]:
            made = []
            for i, (dtype, compute) in enumerate(zip(dtypes, computes, strict=True)):
                dtype = torch.float32 if dtype.is_floating_point else dtype
                value = Value(f"{side}.f{i}", ValueRanges.unknown(), dtype, ())
                value.compute = compute
                self.library.use_type(compute)
                made.append(value)
            return tuple(made)

        kernel: Any = self
        buffer, outer, cse = IndentedBuffer(initial_indent=1), kernel.compute, kernel.cse
        kernel.compute, kernel.cse = buffer, type(cse)(self.newvar_prefix, self.suffix)
        try:
            results = [getattr(x, "value", x) for x in combine(operands("a"), operands("b"))]  # OpsValue or Value
        finally:
            kernel.compute, kernel.cse = outer, cse
        return buffer.getvalue(), results


def _by_memory(name: str, computes: list[str], workgroup: int) -> str:
    return f"""var<workgroup> {name}_lanes: array<{name}, {workgroup}>;
fn {name}_across(own: {name}, carry: ptr<function, {name}>, first: bool, lane: u32) -> {name} {{
  var x = own;
  for (var d = 1u; d < {workgroup}u; d <<= 1u) {{
    {name}_lanes[lane] = x;
    workgroupBarrier();
    if (lane >= d) {{ x = {name}_join({name}_lanes[lane - d], x); }}
    workgroupBarrier();
  }}
  {name}_lanes[lane] = x;
  workgroupBarrier();
  var total = {name}_lanes[{workgroup - 1}u];
  workgroupBarrier();
  if (!first) {{
    x = {name}_join(*carry, x);
    total = {name}_join(*carry, total);
  }}
  *carry = total;
  return x;
}}"""


def _by_subgroup(name: str, computes: list[str], workgroup: int) -> str:
    def of_lane(place: str) -> str:
        fields = [
            f"subgroupShuffle(u32(x.f{i}), {place}) != 0u" if compute == "bool" else f"subgroupShuffle(x.f{i}, {place})"
            for i, compute in enumerate(computes)
        ]
        return f"{name}({', '.join(fields)})"

    rounds, distance = "", 1
    while distance < workgroup:
        place = f"select(lane, lane - {distance}u, lane >= {distance}u)"
        rounds += f"  let before{distance} = {of_lane(place)};\n"
        rounds += f"  if (lane >= {distance}u) {{ x = {name}_join(before{distance}, x); }}\n"
        distance *= 2
    return f"""fn {name}_across(own: {name}, carry: ptr<function, {name}>, first: bool, lane: u32) -> {name} {{
  var x = own;
{rounds}  var total = {of_lane(f"{workgroup - 1}u")};
  if (!first) {{
    x = {name}_join(*carry, x);
    total = {name}_join(*carry, total);
  }}
  *carry = total;
  return x;
}}"""
