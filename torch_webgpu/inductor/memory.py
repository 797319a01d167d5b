"""Bindings of a generated kernel, and the functions that load from them and store to them."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch._inductor import ir
from torch._inductor.virtualized import V

from torch_webgpu.inductor.pages import Array
from torch_webgpu.inductor.types import COMPUTE, from_raw, size_of, to_raw, wgsl_type


def begins_its_storage(name: str) -> bool:
    """Whether a buffer of the graph is sure to begin where its memory does, so that its quads are whole quads. The
    graph's inputs and what eager ops return may be views."""
    buffer: Any = V.graph.try_get_buffer(name)
    if name in V.graph.graph_inputs or not isinstance(buffer, (ir.ComputedBuffer, ir.ExternKernelOut)):
        return False
    layout: Any = buffer.layout
    return not isinstance(layout, (ir.NonOwningLayout, ir.MutationLayoutSHOULDREMOVE)) and layout.offset == 0


def resolve(name: str, index: Any) -> tuple[str, Any]:
    """The buffer that holds a view's memory (the inputs of a cat are views of its result), and the index there."""
    buffer: Any = V.graph.try_get_buffer(name)
    while isinstance(getattr(buffer, "layout", None), ir.NonOwningLayout):
        view = buffer.layout.view
        index = index + view.get_layout().offset
        name = view.get_name()
        buffer = V.graph.try_get_buffer(name)
    return name, index


@dataclasses.dataclass
class Binding:
    """A buffer of a kernel: how it is reached decides what it is declared as."""

    name: str
    dtype: torch.dtype
    begins_storage: bool = True
    loads: bool = False  # elements
    stores: bool = False
    load_quads: bool = False
    store_quads: bool = False
    adds: bool = False
    pages: int = 1  # bindings that it takes

    @property
    def is_written(self) -> bool:
        return self.stores or self.store_quads or self.adds

    @property
    def is_atomic(self) -> bool:
        """Two lanes may write elements of one word."""
        return self.adds or (self.stores and size_of(self.dtype) < 4)

    @property
    def element(self) -> str:
        if self.is_atomic:
            return "atomic<u32>"
        if not (self.load_quads or self.store_quads):
            return "u32"
        return {1: "u32", 2: "vec2<u32>"}.get(size_of(self.dtype), "vec4<u32>")


class Accessors:
    """Prints the functions of one binding: load_<name>(i), store_<name>(i, v), load4_, store4_ and add_."""

    def __init__(self, binding: Binding, slot: int, offset: str) -> None:
        self.binding, self.slot, self.name = binding, slot, binding.name
        self.bytes = size_of(binding.dtype)
        self.type = wgsl_type(COMPUTE[binding.dtype])
        self.offset = "" if binding.begins_storage else f" + {offset}"
        access = "read_write" if binding.is_written else "read"
        self.array = Array(binding.name, binding.element, access, binding.pages)

    def text(self) -> str:
        b = self.binding
        parts = []
        if b.loads or (b.load_quads and not b.begins_storage) or (b.load_quads and b.is_atomic):
            parts.append(self._load())
        if b.load_quads:
            parts.append(self._load_quad())
        if b.stores or b.store_quads:
            parts.append(self._store())
        if b.store_quads:
            parts.append(self._store_quad())
        if b.adds:
            parts.append(self._add())
        return "\n".join((self.array.declarations(self.slot), *parts))

    def _word_in_element(self, index: str) -> tuple[str, str]:
        """The element of the array that holds a word, and which of the element's words it is."""
        shift = {"vec4<u32>": 2, "vec2<u32>": 1}.get(self.binding.element, 0)
        return (f"({index}) >> {shift}u", f"({index}) & {(1 << shift) - 1}u") if shift else (index, "")

    def _read_word(self, index: str) -> str:
        element, word = self._word_in_element(index)
        return f"{self.array.get(element)}[{word}]" if word else self.array.get(element)

    def _write_word(self, index: str, value: str) -> str:
        element, word = self._word_in_element(index)
        return self.array.put_word(element, word, value) if word else self.array.put(element, value)

    def _begin(self) -> str:
        return f"  let e = u32(i{self.offset});\n"

    def _load(self) -> str:
        if self.bytes == 8:
            raw = f"vec2<u32>({self._read_word('e * 2u')}, {self._read_word('e * 2u + 1u')})"
        elif self.bytes == 4:
            raw = self._read_word("e")
        else:
            shift, mask, bits = (1, 1, 16) if self.bytes == 2 else (2, 3, 8)
            raw = f"({self._read_word(f'e >> {shift}u')} >> ((e & {mask}u) * {bits}u))"
        value = from_raw(self.binding.dtype, raw)
        return f"fn load_{self.name}(i: i32) -> {self.type} {{\n{self._begin()}  return {value};\n}}"

    def _quad_type(self) -> str:
        return "Quad_i64" if self.bytes == 8 else f"vec4<{self.type}>"

    def _unpacked(self) -> str:
        """The four values of a quad that was read whole, at `e`."""
        dtype, get = self.binding.dtype, self.array.get
        if self.bytes == 8:
            return (f"  let a = {get('e >> 1u')};\n  let b = {get('(e >> 1u) + 1u')};\n"
                    "  return Quad_i64(vec4<u32>(a.x, a.z, b.x, b.z), vec4<u32>(a.y, a.w, b.y, b.w));\n")  # fmt: skip
        if self.bytes == 4:
            return f"  return bitcast<vec4<{self.type}>>({get('e >> 2u')});\n"
        if dtype is torch.float16:
            return f"  let w = {get('e >> 2u')};\n  return vec4<f32>(unpack2x16float(w.x), unpack2x16float(w.y));\n"
        if self.bytes == 2:
            raws = ["w.x", "(w.x >> 16u)", "w.y", "(w.y >> 16u)"]
        else:
            raws = ["w", "(w >> 8u)", "(w >> 16u)", "(w >> 24u)"]
        values = ", ".join(from_raw(dtype, raw) for raw in raws)
        return f"  let w = {get('e >> 2u')};\n  return vec4<{self.type}>({values});\n"

    def _load_quad(self) -> str:
        head = f"fn load4_{self.name}(i: i32) -> {self._quad_type()} {{\n"
        if self.bytes == 8:
            four = [f"load_{self.name}(i + {j})" for j in range(4)]
            single = "".join(f"    let v{j} = {v};\n" for j, v in enumerate(four)) + (
                "    return Quad_i64(vec4<u32>(v0.x, v1.x, v2.x, v3.x), vec4<u32>(v0.y, v1.y, v2.y, v3.y));\n"
            )
        else:
            single = f"    return vec4<{self.type}>({', '.join(f'load_{self.name}(i + {j})' for j in range(4))});\n"
        if self.binding.is_atomic:
            return f"{head}{single}}}"
        uneven = "" if self.binding.begins_storage else f"  if (is_uneven(e)) {{\n{single}  }}\n"
        return f"{head}{self._begin()}{uneven}{self._unpacked()}}}"

    def _store(self) -> str:
        head = f"fn store_{self.name}(i: i32, v: {self.type}) {{\n{self._begin()}"
        raw = to_raw(self.binding.dtype, "v")
        if self.bytes >= 4:
            if self.bytes == 8:
                return f"{head}  {self._write_word('e * 2u', 'v.x')}\n  {self._write_word('e * 2u + 1u', 'v.y')}\n}}"
            return f"{head}  {self._write_word('e', raw)}\n}}"
        if not self.binding.is_atomic:
            return ""  # stored by quads alone
        shift, mask, bits, ones = self._packing()
        cleared = self.array.change("atomicAnd", f"e >> {shift}u", f"~({ones} << s)")
        filled = self.array.change("atomicOr", f"e >> {shift}u", f"{raw} << s")
        return f"{head}  let s = (e & {mask}u) * {bits}u;\n  {cleared}\n  {filled}\n}}"

    def _packing(self) -> tuple[int, int, int, str]:
        return (1, 1, 16, "0xffffu") if self.bytes == 2 else (2, 3, 8, "0xffu")

    def _store_quad(self) -> str:
        """`left` elements of the quad are the tensor's. What is smaller than a word is padded to whole words."""
        name, dtype = self.name, self.binding.dtype
        head = f"fn store4_{name}(i: i32, v: {self._quad_type()}, left: i32) {{\n{self._begin()}"
        lane = (lambda j: f"vec2<u32>(v.lo[{j}], v.hi[{j}])") if self.bytes == 8 else (lambda j: f"v[{j}]")
        raws = [to_raw(dtype, lane(j)) for j in range(4)]
        single = "".join(f"    if (left > {j}) {{ store_{name}(i + {j}, {lane(j)}); }}\n" for j in range(4))
        if self.binding.is_atomic:
            return f"{head}{single}}}"
        if self.bytes < 4:
            if self.bytes == 2:
                whole = f"vec2<u32>({raws[0]} | ({raws[1]} << 16u), {raws[2]} | ({raws[3]} << 16u))"
            else:
                whole = f"{raws[0]} | ({raws[1]} << 8u) | ({raws[2]} << 16u) | ({raws[3]} << 24u)"
            return f"{head}  {self.array.put('e >> 2u', whole)}\n}}"
        uneven = "left < 4" if self.binding.begins_storage else "left < 4 || is_uneven(e)"
        if self.bytes == 8:
            first = self.array.put("e >> 1u", "vec4<u32>(v.lo.x, v.hi.x, v.lo.y, v.hi.y)")
            second = self.array.put("(e >> 1u) + 1u", "vec4<u32>(v.lo.z, v.hi.z, v.lo.w, v.hi.w)")
            whole = f"  {first}\n  {second}\n"
        else:
            whole = f"  {self.array.put('e >> 2u', 'bitcast<vec4<u32>>(v)')}\n"
        return f"{head}  if ({uneven}) {{\n{single}    return;\n  }}\n{whole}}}"

    def _add(self) -> str:
        """By compare-exchange of the word that holds the element."""
        dtype = self.binding.dtype
        head = f"fn add_{self.name}(i: i32, v: {self.type}) {{\n{self._begin()}"
        if self.bytes == 4 and self.type == "i32":
            return f"{head}  {self.array.change('atomicAdd', 'e', 'bitcast<u32>(v)')}\n}}"
        if self.bytes == 4:
            place, new = "e", to_raw(dtype, f"{from_raw(dtype, 'old')} + v")
        else:
            shift, mask, bits, ones = self._packing()
            head += f"  let s = (e & {mask}u) * {bits}u;\n"
            total = to_raw(dtype, f"{from_raw(dtype, '(old >> s)')} + v")
            place, new = f"e >> {shift}u", f"(old & ~({ones} << s)) | ({total} << s)"
        return (f"{head}  var old = {self.array.get(place)};\n  loop {{\n    let result = "
                f"{self.array.exchange(place, 'old', new)};\n    if (result.exchanged) {{ break; }}\n"
                "    old = result.old_value;\n  }\n}")  # fmt: skip


QUAD_I64 = "struct Quad_i64 { lo: vec4<u32>, hi: vec4<u32> }"
