"""Buffers that one binding cannot hold: a generated kernel binds them as pages, one behind the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy
import torch
from torch._inductor import ir
from torch._inductor.utils import sympy_product
from torch._inductor.virtualized import V

from torch_webgpu.inductor import launch

# A binding begins at a multiple of 256 bytes, and ends at one of 16.
_MARGIN = 256 + 16
_BYTES = {"u32": 4, "atomic<u32>": 4, "vec2<u32>": 8, "vec4<u32>": 16}


def page_bytes() -> int:
    return int(launch.target()["max_binding_bytes"])


def pages_for(size_bytes: Any) -> int:
    """The pages of so many bytes, with a guard on sizes that are dynamic."""
    size = V.graph.sizevars.simplify(sympy.sympify(size_bytes) + _MARGIN)
    if not size.is_Integer:
        if V.graph.sizevars.guard_or_true(sympy.Le(size, page_bytes())):
            return 1
        pages = -(-V.graph.sizevars.optimization_hint(size) // page_bytes())
        V.graph.sizevars.check_leq(size, sympy.Integer(pages * page_bytes()))
        return pages
    return -(-int(size) // page_bytes())


def pages_of(name: str) -> int:
    """The pages of a buffer of the graph."""
    buffer: Any = V.graph.try_get_buffer(name)
    required: Any = ir.compute_required_storage_length
    layout = None if buffer is None else buffer.maybe_get_layout()
    if not isinstance(layout, ir.Layout):
        return 1
    length = required(layout.size, layout.stride, sympy.S.Zero)
    return pages_for(length * layout.dtype.itemsize)


def fit(*operands: Any) -> bool:
    """Whether a binding holds each of them from its first element to its last, as the kernels of templates need."""
    return all(pages_for(_length(x) * x.get_dtype().itemsize) == 1 for x in operands)


def fits(size: Sequence[Any], dtype: torch.dtype) -> bool:
    """The same of a result that lies dense."""
    return pages_for(sympy_product(size) * dtype.itemsize) == 1


def _length(x: Any) -> Any:
    """What has no memory yet will lie dense."""
    if not ir.is_storage_and_layout(x):
        return sympy_product(x.get_size())
    layout = ir.as_storage_and_layout(x, freeze=False)[1]
    required: Any = ir.compute_required_storage_length
    return required(layout.size, layout.stride, sympy.S.Zero)


class Array:
    """How the elements of a kernel's binding are reached: by an index, or where it has pages by functions of one."""

    def __init__(self, name: str, element: str, access: str, pages: int) -> None:
        self.name, self.element, self.access, self.pages = name, element, access, pages
        self._functions: dict[str, str] = {}

    @property
    def is_atomic(self) -> bool:
        return self.element == "atomic<u32>"

    def declarations(self, slot: int) -> str:
        """Of the variables, and of those functions that were asked for."""
        kind = f"var<storage, {self.access}>"
        if self.pages == 1:
            return f"@group(0) @binding({slot}) {kind} {self.name}: array<{self.element}>;"
        variables = [
            f"@group(0) @binding({slot + page}) {kind} {self.name}_{page}: array<{self.element}>;"
            for page in range(self.pages)
        ]
        return "\n".join((*variables, *self._functions.values()))

    def _call(self, function: str, parameters: str, result: str, statement: str, arguments: str) -> str:
        """A call of a function of an element's index, which prints `statement` for the element's page."""
        name = f"{function}_{self.name}"
        if name not in self._functions:
            length, lines = page_bytes() // _BYTES[self.element], ""
            for page in range(self.pages):
                place = f"{self.name}_{page}[i - {page * length}u]" if page else f"{self.name}_0[i]"
                body = statement.format(place) + ("" if result else " return;")
                is_last = page == self.pages - 1
                lines += f"  {body}\n" if is_last else f"  if (i < {(page + 1) * length}u) {{ {body} }}\n"
            head = f"fn {name}(i: u32{parameters}){f' -> {result}' if result else ''} {{\n"
            self._functions[name] = f"{head}{lines}}}"
        return f"{name}({arguments})"

    def get(self, i: str) -> str:
        if self.pages == 1:
            return f"atomicLoad(&{self.name}[{i}])" if self.is_atomic else f"{self.name}[{i}]"
        kind = "u32" if self.is_atomic else self.element
        return self._call("get", "", kind, "return atomicLoad(&{});" if self.is_atomic else "return {};", i)

    def put(self, i: str, value: str) -> str:
        if self.pages == 1:
            place = f"{self.name}[{i}]"
            return f"atomicStore(&{place}, {value});" if self.is_atomic else f"{place} = {value};"
        kind, statement = ("u32", "atomicStore(&{}, v);") if self.is_atomic else (self.element, "{} = v;")
        return self._call("put", f", v: {kind}", "", statement, f"{i}, {value}") + ";"

    def put_word(self, i: str, word: str, value: str) -> str:
        """Changes one word of an element that has several."""
        if self.pages == 1:
            return f"{self.name}[{i}][{word}] = {value};"
        return self._call("put_word", ", word: u32, v: u32", "", "{}[word] = v;", f"{i}, {word}, {value}") + ";"

    def change(self, function: str, i: str, value: str) -> str:
        """By atomicAnd, atomicOr or atomicAdd."""
        if self.pages == 1:
            return f"{function}(&{self.name}[{i}], {value});"
        return self._call(function, ", v: u32", "", f"{function}(&{{}}, v);", f"{i}, {value}") + ";"

    def exchange(self, i: str, old: str, new: str) -> str:
        if self.pages == 1:
            return f"atomicCompareExchangeWeak(&{self.name}[{i}], {old}, {new})"
        struct = f"Exchanged_{self.name}"
        self._functions[struct] = f"struct {struct} {{ exchanged: bool, old_value: u32 }}"
        statement = f"let r = atomicCompareExchangeWeak(&{{}}, old, new_); return {struct}(r.exchanged, r.old_value);"
        return self._call("exchange", ", old: u32, new_: u32", struct, statement, f"{i}, {old}, {new}")


def refuses(tensor: torch.Tensor) -> bool:
    """Whether a tensor has more elements than a kernel's indices reach."""
    from torch.fx.experimental.symbolic_shapes import guard_or_false

    return guard_or_false(tensor.numel() >= 2**31)
