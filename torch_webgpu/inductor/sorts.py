"""Sorts of short rows: a workgroup takes a row, gathers its keys in workgroup memory and sorts them there.

A sort ends the walk that gives its keys: what follows it in a loop body is a walk of its own over the sorted row.
The network of compare-exchanges is bitonic, and each round has a barrier behind it. Equal keys keep their order, since
their indices are compared.
"""

from __future__ import annotations

import functools
import hashlib
import re
from typing import Any

import torch
from torch._inductor.codegen.common import IndentedBuffer
from torch._inductor.virtualized import V

from torch_webgpu.inductor.rows import DEFINITION
from torch_webgpu.inductor.scans import Scans
from torch_webgpu.inductor.types import COMPUTE, from_raw, size_of, to_raw, wgsl_type
from torch_webgpu.inductor.values import Value, as_compute

MEMORY_BYTES = 3 << 12  # of the 16 KiB that a workgroup has at least: reductions and scans of the kernel need some too

# A key as words that compare as numbers do: the high word, then the low one. NaN is behind all, and -0 equals 0.
_KEYS = {
    "f32": "let b = bitcast<u32>(v);\n"
    "  let n = select(b ^ select(0x80000000u, 0xffffffffu, b >> 31u == 1u), 0x80000000u, b == 0x80000000u);\n"
    "  return vec2<u32>(select(n, 0xffffffffu, (b & 0x7fffffffu) > 0x7f800000u), 0u);",
    "i32": "return vec2<u32>(bitcast<u32>(v) ^ 0x80000000u, 0u);",
    "i64": "return vec2<u32>(v.y ^ 0x80000000u, v.x);",
    "bool": "return vec2<u32>(u32(v), 0u);",
}


class Sorts(Scans):
    def init_sorts(self) -> None:
        self.sorts: dict[str, str] = {}  # names of sorted rows, by what they are made of
        self.sorted_stores: dict[str, tuple[Any, str, torch.dtype]] = {}  # buffers that hold one: index, text and dtype

    @property
    def has_sort(self) -> bool:
        return bool(self.features.contains_op("sort"))

    def sort(
        self, dtypes: tuple[torch.dtype, ...], values: tuple[Any, ...], stable: bool, descending: bool
    ) -> tuple[Any, ...]:
        if len(values) != 2 or COMPUTE[dtypes[1]] != "i32":
            raise NotImplementedError("a sort of other things than keys and indices")
        made_of = f"{descending} {dtypes[0]} {self._written_out(values[0])} {self._written_out(values[1])}"
        if made_of not in self.sorts:
            self.sorts[made_of] = self._sort(dtypes[0], values, descending)
        name = self.sorts[made_of]
        return tuple(
            self._sorted(f"{name}_{field}[{self.row.name}]", dtype)
            for field, dtype in zip(("keys", "indices"), dtypes, strict=True)
        )

    def _sorted(self, text: str, dtype: torch.dtype) -> Value:
        compute = COMPUTE[dtype]
        value: Value = self.cse.generate(
            self.compute, text, dtype=torch.float32 if dtype.is_floating_point else dtype, shape=()
        )
        value.compute, value.sorted_from = compute, (text, dtype)
        return value

    def _written_out(self, value: Any) -> str:
        """A value's expression without names of the current walk."""
        lines = [line for part in (self.loads, self.compute) for line in part._lines if isinstance(line, str)]
        defined = {found[1]: found[2] for found in map(DEFINITION.match, lines) if found}

        @functools.cache
        def digest(name: str) -> str:
            return hashlib.sha256(write_out(defined[name]).encode()).hexdigest()

        def write_out(text: str) -> str:
            return re.sub(r"\b[a-zA-Z_]\w*\b", lambda word: digest(word[0]) if word[0] in defined else word[0], text)

        return write_out(str(value))

    def _sort(self, dtype: torch.dtype, values: tuple[Any, ...], descending: bool) -> str:
        """Ends the current walk, and sorts what it gathered."""
        compute, name = COMPUTE[dtype], f"sorted{len(self.sorts)}"
        length = int(V.graph.sizevars.shape_env.bound_sympy(self.row.numel).upper)
        bytes_each = 4 + (8 if compute == "i64" else 4)
        if (len(self.sorts) + 1) * length * bytes_each > MEMORY_BYTES:
            raise NotImplementedError("sorted rows that exceed the memory of a workgroup")
        self.library.use_type(compute)
        key = as_compute(values[0], compute)
        if size_of(dtype) < 4 and compute != "bool":
            key = from_raw(dtype, to_raw(dtype, key))  # equal are those that are stored alike
        gathered = (
            f"{name}_keys[{self.row.name}] = {key};",
            f"{name}_indices[{self.row.name}] = {as_compute(values[1], 'i32')};",
        )
        for line in gathered:  # lanes behind the end of a row have what a scan made of its last element
            self.compute.writeline(f"if (inside) {{ {line} }}" if self.in_step else line)
        self._define(name, compute, length, descending)
        self._end_pass()
        sorting = IndentedBuffer()
        sorting.writeline(f"{name}_sort(u32({self.index_to_str(self.row.numel)}), lane);")
        self.parts.append(sorting)
        if len(self.sorts) == 0:
            last_row_was_read = IndentedBuffer()
            last_row_was_read.writeline("workgroupBarrier();")
            self.parts.insert(0, last_row_was_read)
        return name

    def _define(self, name: str, compute: str, length: int, descending: bool) -> None:
        kind, turned = wgsl_type(compute), "~" if descending else ""
        self.library.define(
            f"key_of_{compute}", f"fn key_of_{compute}(v: {kind}) -> vec2<u32> {{\n  {_KEYS[compute]}\n}}"
        )
        self.library.define(
            name,
            f"""var<workgroup> {name}_keys: array<{kind}, {length}>;
var<workgroup> {name}_indices: array<i32, {length}>;
fn {name}_exchange(i: u32, j: u32) {{
  let v = {name}_keys[i];
  let w = {name}_keys[j];
  let a = {turned}key_of_{compute}(v);
  let b = {turned}key_of_{compute}(w);
  let at = {name}_indices[i];
  let other = {name}_indices[j];
  let is_equal = all(a == b);
  if (b.x < a.x || (b.x == a.x && b.y < a.y) || (is_equal && other < at)) {{
    {name}_keys[i] = w;
    {name}_keys[j] = v;
    {name}_indices[i] = other;
    {name}_indices[j] = at;
  }}
}}
fn {name}_sort(count: u32, lane: u32) {{
  workgroupBarrier();
  for (var run = 2u; run < 2u * count; run <<= 1u) {{
    for (var step = run >> 1u; step > 0u; step >>= 1u) {{
      for (var pair = lane; pair < (count + run) / 2u; pair += {self.row_workgroup}u) {{
        let inside = pair % step;
        let i = 2u * (pair - inside) + inside;
        let j = select(i + step, i + run - 1u - 2u * inside, step == run >> 1u);
        if (j < count) {{ {name}_exchange(i, j); }}
      }}
      workgroupBarrier();
    }}
  }}
}}""",
        )

    # What is stored of a sorted row is read from workgroup memory by the walks behind it.

    def end_of_pass(self) -> None:
        super().end_of_pass()
        self.cse.invalidated_stores.difference_update(self.sorted_stores)

    def keep_sorted(self, name: str, index: Any, value: Any) -> None:
        if isinstance(value, Value) and value.sorted_from is not None:
            self.sorted_stores[name] = (index, *value.sorted_from)

    def load_sorted(self, name: str, index: Any) -> Any:
        if name not in self.sorted_stores:
            return None
        stored, text, dtype = self.sorted_stores[name]
        if stored == index:
            return self._sorted(text, dtype)
        self.must_keep_buffers.add(name)  # by other index variables than the store's: read from memory
        return None
