"""Reductions whose outputs lie side by side, as sums over leading dimensions: a lane takes four columns at once.

A step loads quads of neighbouring columns, and every accumulator is four. What is done once for a column (loads of
weights, what becomes of a result, its store) is a loop over the four as well; between two such loops a value that the
later one uses is kept. On GPUs a workgroup is four lines of 64 lanes: the lines share the rows of the same columns.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import sympy
from torch._inductor.codegen.common import IndentedBuffer
from torch._inductor.virtualized import V
from torch.utils._sympy.functions import FloorDiv, Max

from torch_webgpu.inductor import launch
from torch_webgpu.inductor.across import SIDE
from torch_webgpu.inductor.blocks import Blocks
from torch_webgpu.inductor.loops import Loop, guarded
from torch_webgpu.inductor.rows import DEFINITION, Pass, names_in
from torch_webgpu.inductor.types import wgsl_type

LINES = 4  # of SIDE lanes
FEWEST_COLUMNS = 16
FEWEST_ROWS_OF_LINES = 16
MOST_LOADS = 8  # that a lane has under way


def quad_type(kind: str) -> str:
    return f"vec4<{kind}>" if kind in ("f32", "i32", "u32", "bool") else f"array<{kind}, 4>"


def quad_of(kind: str, value: str) -> str:
    return f"{quad_type(kind)}({', '.join([value] * 4)})"


class Columns(Blocks):
    def init_rows(self) -> None:
        super().init_rows()
        self.in_lines = False

    def decide_columns(self, indices: Sequence[sympy.Expr], length: int, columns: int) -> None:
        software = launch.target()["software"]
        if columns < FEWEST_COLUMNS:
            return
        runs = [self.classify(index) for index in self.of_both(indices)].count("run")
        if software:
            self.by_columns = runs > 0
            self.by_lane = self.by_lane or self.by_columns
        elif length >= FEWEST_ROWS_OF_LINES:
            self.by_columns, self.by_lane = True, False
            self.in_lines, self.row_lanes = True, SIDE * LINES
            if runs == 0:
                self.quad_tree = None
        if self.by_columns:
            most = MOST_LOADS if not software else 2 if self.has_steps() else 4
            self.block = max(1, min(most, MOST_LOADS // max(runs, 1)))

    # The launch

    def plan_rows(self) -> launch.Plan:
        if not self.by_columns:
            return super().plan_rows()
        sizes = V.graph.sizevars
        columns, width = self.range_trees[0].numel, 4 if self.quad_tree is not None else 1
        if self.in_lines:
            tiles = sizes.simplify(FloorDiv(columns + SIDE * width - 1, SIDE * width))
            return launch.Plan(tiles, 1, SIDE * LINES)
        workgroup = launch.target()["workgroup"]
        cost = sizes.simplify(Max(sympy.S.One, self.row.numel))
        return launch.Plan(sizes.simplify(FloorDiv(columns + width - 1, width)), workgroup, workgroup, cost)

    # The text

    def print_rows(self, main: IndentedBuffer, plan: launch.Plan) -> None:
        if not self.by_columns:
            super().print_rows(main, plan)
            return
        tree, body = self.range_trees[0], IndentedBuffer()
        self._print_parts(body)
        main.writeline(f"let begin = i32(group.x) * {plan.chunk_text};")
        main.writeline(f"let end = min(begin + {plan.chunk_text}, {self.index_to_str(plan.steps)});")
        if self.in_lines:
            main.writeline(f"let line = i32(lane) / {SIDE};")
            main.writeline("for (var tile = begin; tile < end; tile++) {")
            place = f"tile * {SIDE} + i32(lane) % {SIDE}"
        else:
            main.writeline(f"for (var quad = begin + i32(lane); quad < end; quad += {plan.workgroup}) {{")
            place = "quad"
        with main.indent():
            if self.quad_tree is not None:
                main.writelines([f"let first = ({place}) * 4;", f"let {tree.name} = first;"])
            else:
                main.writeline(f"let {tree.name} = {place};")
            main.writelines(self.declared(tree.prefix, body.getvalue()))
            main.splice(body)
        main.writeline("}")

    def conditions_of_columns(self) -> list[str]:
        """What must be true where an element is stored: where lines join, all lanes take part, behind the last column
        too, and lanes of all lines have what is once for a column."""
        tree = self.range_trees[0]
        conditions = [f"{tree.name} < {self.index_to_str(tree.numel)}"] if self.in_lines or self.quad_tail else []
        return [*conditions, "line == 0"] if self.in_lines and self.is_once_for_columns else conditions

    def _print_parts(self, text: IndentedBuffer) -> None:
        """Each part of the work, with what it keeps for later parts."""
        bodies = [body for part in self.parts for body in _bodies_of(part)]
        kept = self._find_kept(bodies)
        of = {id(body): self._with_kept(number, body, kept) for number, body in enumerate(bodies)}
        for name in kept:
            kind = quad_type(wgsl_type(self.made[name].compute))
            text.writeline(f"var {name}_of: {kind} = {kind}();")
        for part in self.parts:
            if isinstance(part, Pass):
                text.splice(part.front)
                text.splice(self._of_columns(of[id(part.before)]))
                loop = dataclasses.replace(part.loop, body=of[id(part.loop.body)], stores=self._stores(part.loop))
                self._print_steps(loop, text)
                text.splice(self._of_columns(of[id(part.after)]))
            elif isinstance(part, Loop):
                text.splice(part.loads)
                text.splice(self._of_columns(of[id(part.body)]))
                text.splice(self._stores(part))

    def _of_columns(self, body: IndentedBuffer) -> IndentedBuffer:
        """What is done once for each column."""
        return self.over_quad(body) if self.quad_tree is not None and body.getvalue() else body

    def _stores(self, loop: Loop) -> IndentedBuffer:
        if not self.in_lines or not loop.stores.getvalue():
            return loop.stores
        tree = self.range_trees[0]
        condition = f"{tree.name} < {self.index_to_str(tree.numel)}"
        return guarded(loop.stores, condition if loop.tree.is_reduction else f"{condition} && line == 0")

    def _print_steps(self, loop: Loop, text: IndentedBuffer) -> None:
        """The walk along the columns. Where many loads are to be under way, several steps at a time as long as there
        are so many."""
        begin, lines = ("line", LINES) if self.in_lines else ("0", 1)
        if not any(part.getvalue() for part in (loop.loads, loop.body, loop.stores)):
            return
        numel, sizes, together = self.row.numel, V.graph.sizevars, self.block * lines
        has_blocks = self.block > 1 and not sizes.statically_known_lt(numel, together)
        is_whole = has_blocks and sizes.statically_known_multiple_of(numel, together)
        rows = self.index_to_str(numel)

        def print_steps(last: str, by: int, steps: IndentedBuffer) -> None:
            text.writeline(f"for (; step < {last}; step += {by}) {{")
            with text.indent():
                text.splice(steps)
            text.writeline("}")

        text.writeline("{")
        with text.indent():
            text.writeline(f"var step = {begin};")
            if has_blocks:
                place = "step + h" if lines == 1 else f"step + h * {lines}"
                print_steps(f"{rows} - {together - lines}", together, self.print_loop(loop, place))
            if not is_whole:
                print_steps(rows, lines, self.print_loop(loop, "step", count=1))
        text.writeline("}")

    # What is kept of columns

    def _find_kept(self, bodies: list[IndentedBuffer]) -> dict[str, int]:
        """Values that a later loop over the columns uses, and the number of that which defines them."""
        if self.quad_tree is None:
            return {}
        defined: dict[str, int] = {}
        kept: dict[str, int] = {}
        for number, body in enumerate(bodies):
            text = body.getvalue()
            for name in sorted(names_in(text)):
                if name in defined:
                    kept[name] = defined[name]
            found = map(DEFINITION.match, map(str.strip, text.splitlines()))
            defined.update({match[1]: number for match in found if match and match[1] in self.made})
        return kept

    @staticmethod
    def _with_kept(number: int, body: IndentedBuffer, kept: dict[str, int]) -> IndentedBuffer:
        names, text = names_in(body.getvalue()), IndentedBuffer()
        text.writelines(
            [f"let {name} = {name}_of[j];" for name, made in kept.items() if made < number and name in names]
        )
        text.splice(body)
        text.writelines([f"{name}_of[j] = {name};" for name, made in kept.items() if made == number])
        return text


def _bodies_of(part: Any) -> list[IndentedBuffer]:
    return [part.before, part.loop.body, part.after] if isinstance(part, Pass) else [part.body]
