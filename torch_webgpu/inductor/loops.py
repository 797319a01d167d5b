"""The loop over the elements of a quad, or of a block of quads, between the loads and stores of whole quads."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

from torch._inductor.codegen.common import IndentedBuffer
from torch._inductor.codegen.simd import SIMDKernel


@dataclasses.dataclass
class Around:
    """What is done with whole quads, around a loop over their elements."""

    declared: IndentedBuffer = dataclasses.field(default_factory=IndentedBuffer)
    loads: IndentedBuffer = dataclasses.field(default_factory=IndentedBuffer)
    stores: IndentedBuffer = dataclasses.field(default_factory=IndentedBuffer)


@dataclasses.dataclass
class Loop:
    """What runs for the elements of a tree: loads and stores of whole quads, and between them what each takes."""

    tree: Any
    declared: IndentedBuffer
    loads: IndentedBuffer
    body: IndentedBuffer
    stores: IndentedBuffer


# Without its types, which are those of Triton's kernels.
_Kernel: Any = SIMDKernel


class Loops(_Kernel):
    def init_loops(self) -> None:
        self.block = 1  # quads, or elements, that a lane takes together
        self.by_columns = False  # whether a lane takes what lies side by side, of several rows of a reduction
        self.around_steps, self.around_columns = Around(), Around()

    @property
    def around(self) -> Around:
        """Of the current loop, or of what is done once for columns side by side."""
        return self.around_columns if self.is_once_for_columns else self.around_steps

    @property
    def is_once_for_columns(self) -> bool:
        return self.by_columns and not self.inside_reduction

    @property
    def is_cut(self) -> bool:
        """Whether lanes take what is behind the end of a row, and drop it."""
        return False

    def declared(self, prefix: str, used: str) -> list[str]:
        """Declarations of those index variables of a tree that a text uses."""
        names = {line: line.split()[1] for line in self.entries.get(prefix, ())}
        return [line for line, name in names.items() if re.search(rf"\b{name}\b", used)]

    def take_loop(self, tree: Any) -> Loop:
        """What was gathered for the elements of a tree. What is stored of a whole row comes behind its loop."""
        body = IndentedBuffer()
        for part in (self.loads, self.compute) if tree.is_reduction else (self.loads, self.compute, self.stores):
            body.splice(part)
            part.clear()
        if self.by_columns and not tree.is_reduction:
            around, self.around_columns = self.around_columns, Around()
        else:
            around, self.around_steps = self.around_steps, Around()
        loop = Loop(tree, around.declared, around.loads, body, around.stores)
        self.walk += 1
        if self.registers is None:
            self.quads.clear()
        return loop

    def print_loop(self, loop: Loop, begin: str, inside: str = "", count: int = 0) -> IndentedBuffer:
        """The loop over the elements of a quad, or of a block of them, between the loads and stores of whole quads; or
        one element's body. `begin` is the number of the quad or element, with h for its number in the block, and
        `inside` a comparison that it must pass. `count` of a block's quads are taken, or all."""
        text, stores = IndentedBuffer(), loop.stores
        text.splice(loop.declared)
        if inside and stores.getvalue():
            stores = guarded(stores, f"{begin} {inside}")
        if self.block == 1:
            text.splice(self._print_quad(loop, begin, stores))
            return text
        for part in (loop.loads, loop.body, stores):
            if not part.getvalue():
                continue
            whole = part is not loop.body or self.quad_tree is None
            if not whole and self.by_columns:
                lines = self._whole(loop, begin, self._elements(loop))
            else:
                lines = self._whole(loop, begin, part) if whole else self._elements(loop, f"({begin}) * 4")
            if inside and part is loop.body and not loop.tree.is_reduction and "store" in part.getvalue():
                lines = guarded(lines, f"{begin} {inside}")
            text.writeline(f"for (var h = 0; h < {count or self.block}; h++) {{")
            with text.indent():
                text.splice(lines)
            text.writeline("}")
        return text

    def _print_quad(self, loop: Loop, begin: str, stores: IndentedBuffer) -> IndentedBuffer:
        if self.quad_tree is None:
            return self._whole(loop, begin, loop.body)
        whole = IndentedBuffer()
        whole.splice(loop.loads)
        whole.splice(self._elements(loop, "" if self.by_columns else loop.tree.name))
        whole.splice(stores)
        return self._whole(loop, begin, whole)

    def _whole(self, loop: Loop, begin: str, part: IndentedBuffer) -> IndentedBuffer:
        """Statements about a quad, or an element where there are no quads. Quads of columns are those of one row."""
        text, tree = IndentedBuffer(), loop.tree
        text.writeline(f"let {tree.name} = {f'({begin}) * 4' if self.quad_tree is tree else begin};")
        text.writelines(self.declared(tree.prefix, part.getvalue()))
        if self.quad_tree is None:
            self._print_inside(loop, text)
        text.splice(part)
        return text

    def _print_inside(self, loop: Loop, text: IndentedBuffer) -> None:
        if loop.tree.is_reduction and self.is_cut and "inside" in loop.body.getvalue():
            text.writeline(f"let inside = {loop.tree.name} < {self.index_to_str(loop.tree.numel)};")

    def _elements(self, loop: Loop, begin: str = "") -> IndentedBuffer:
        """The loop over a quad's elements, whose first is `begin` if it has no name yet."""
        text, tree = IndentedBuffer(), loop.tree
        if begin:
            text.writeline(f"let first = {begin};")
        body = IndentedBuffer()
        if self.quad_tree is tree:
            self._print_inside(loop, body)
            if self.quad_tail and tree.is_reduction and self.registers is None:
                body.writeline(f"if ({tree.name} >= {self.index_to_str(tree.numel)}) {{ break; }}")
        body.splice(loop.body)
        text.splice(self.over_quad(body))
        return text

    def over_quad(self, body: IndentedBuffer) -> IndentedBuffer:
        text, tree = IndentedBuffer(), self.quad_tree
        text.writeline("for (var j = 0; j < 4; j++) {")
        with text.indent():
            text.writeline(f"let {tree.name} = first + j;")
            text.writelines(self.declared(tree.prefix, body.getvalue()))
            text.splice(body)
        text.writeline("}")
        return text

    def element_loop(self, tree: Any, begin: str) -> IndentedBuffer:
        return self.print_loop(self.take_loop(tree), begin)


def guarded(lines: IndentedBuffer, condition: str) -> IndentedBuffer:
    text = IndentedBuffer()
    text.writeline(f"if ({condition}) {{")
    with text.indent():
        text.splice(lines)
    text.writeline("}")
    return text
