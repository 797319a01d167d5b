"""The rows of a reduction: who takes them, and the passes along them.

Inductor's loop bodies walk a row once for each reduction and once for what follows: each walk is a `Pass`. What is the
same for a whole row is computed in front of it. A row per lane where rows are short or lie side by side, a row per
workgroup where they are long.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Iterator, Sequence
from typing import Any

import sympy
from torch._inductor.codegen.common import IndentedBuffer
from torch._inductor.virtualized import V
from torch.utils._sympy.functions import FloorDiv, Max
from torch.utils._sympy.symbol import SymT, free_symbol_is_type

from torch_webgpu.inductor import launch
from torch_webgpu.inductor.loops import Loop, Loops

DEFINITION = re.compile(r"(?:let|var) (\w+)(?:: [^=]+)? = (.*);$")
_NAMES = re.compile(r"(?<![\w.])[a-zA-Z_]\w*\b(?!\s*\()")  # of variables: neither functions nor members
_WORDS = frozenset(("i32", "u32", "f32", "bool", "true", "false"))


@dataclasses.dataclass
class Pass:
    """A walk along a row, with what comes in front of it and behind it."""

    front: IndentedBuffer  # accumulators, and quads of columns
    before: IndentedBuffer
    loop: Loop
    after: IndentedBuffer


@dataclasses.dataclass
class Stores:
    """What is stored of a whole row."""

    lines: IndentedBuffer


def names_in(text: str) -> set[str]:
    return set(_NAMES.findall(text))


class Rows(Loops):
    def init_rows(self) -> None:
        self.by_lane = False
        self.in_step = False  # whether the lanes of a workgroup walk a row in step, as scans need
        self.row_lanes = 0  # of a workgroup that takes a row
        self.front, self.before_row, self.after_row = IndentedBuffer(), IndentedBuffer(), IndentedBuffer()
        self.parts: list[Pass | Stores | IndentedBuffer | Loop] = []
        self.follow: Pass | None = None  # a pass over what the current one computes

    def should_use_persistent_reduction(self) -> bool:
        return False

    def should_use_cooperative_reduction(self) -> bool:
        return False

    @property
    def row(self) -> Any:
        return self.range_trees[-1]

    @property
    def row_workgroup(self) -> int:
        return self.row_lanes or (8 if launch.target()["software"] else 64)

    # What is decided before anything is printed

    def decide_rows(self, indices: Sequence[sympy.Expr]) -> None:
        """Decides between lanes and workgroups."""
        hint = V.graph.sizevars.optimization_hint
        length, rows = hint(self.row.numel, fallback=1024), hint(self.range_trees[0].numel, fallback=1024)
        along, across = (self.moved_by(tree, self.of_both(indices)) for tree in (self.row, self.range_trees[0]))
        is_along = self.moved_by(self.row, indices) > 0 if along == across == 0 else along > across
        software = launch.target()["software"]
        if is_along:
            self.by_lane = length <= (48 if software else 32) and rows >= 4
        else:
            self.by_lane = length <= 32 or rows >= (8 if software else 1024)
        has_sorts, has_scans = self.features.contains_op("sort"), self.features.contains_op("scan")
        if has_sorts:
            self.by_lane, self.row_lanes = False, 64 if length <= 128 else 256
        self.in_step = not self.by_lane and has_scans
        if across and not (is_along or has_scans or has_sorts):
            self.decide_columns(indices, length, rows)

    def decide_columns(self, indices: Sequence[sympy.Expr], length: int, columns: int) -> None:
        """Whether lanes take quads of rows that lie side by side."""

    def of_both(self, indices: Sequence[sympy.Expr]) -> list[sympy.Expr]:
        """Those that depend on the row and on the element: others stand for less."""
        nodes, both = self.range_tree_nodes, {tree.prefix for tree in self.range_trees}
        return [i for i in indices if {nodes[s].root.prefix for s in i.free_symbols if s in nodes} == both]

    def moved_by(self, tree: Any, indices: Sequence[sympy.Expr]) -> int:
        """How many indices move through memory one by one as a tree's number does."""
        return sum(self._moves_by_one(tree, index) for index in indices)

    def _moves_by_one(self, tree: Any, index: sympy.Expr) -> bool:
        for symbol in index.free_symbols:
            entry = self.range_tree_nodes.get(symbol)
            if entry is not None and entry.root is tree and entry.divisor == 1 and entry.length != 1:
                return bool(index.coeff(symbol) == 1)
        return False

    def is_outside_row(self, index: sympy.Expr) -> bool:
        nodes = [self.range_tree_nodes.get(s) for s in index.free_symbols]
        return not free_symbol_is_type(index, SymT.TMP) and all(n is None or n.root is not self.row for n in nodes)

    # A pass ends

    def codegen_row(self) -> None:
        """Closes the loop over a row, or what lies between two: Inductor calls it at each border."""
        if self.inside_reduction:
            gathered = (self.loads, self.compute, self.around_steps.loads, self.front, self.before_row, self.after_row)
            if any(gathered):
                self._end_pass()
        elif not self.by_columns:
            between = IndentedBuffer()
            for part in (self.loads, self.compute):
                between.splice(part)
                part.clear()
            if between:
                self.parts.append(between)
            self.begin_of_pass()
        if self.by_columns:
            self.parts.append(self.take_loop(self.range_trees[0]))
        elif self.stores:
            stores = IndentedBuffer()
            stores.splice(self.stores)
            self.stores.clear()
            self.parts.append(Stores(stores))

    def _end_pass(self) -> None:
        loop = self.take_loop(self.row)
        self._hoist(loop.body)
        self.parts.append(self._taken(loop))
        self.scanned.clear()
        self.end_of_pass()
        if self.follow is not None:
            self.parts.append(self.follow)
            self.follow = None

    @contextlib.contextmanager
    def printing_to(self, part: Pass) -> Iterator[None]:
        kernel: Any = self
        current = kernel.front, kernel.before_row, kernel.compute, kernel.after_row
        kernel.front, kernel.before_row = part.front, part.before
        kernel.compute, kernel.after_row = part.loop.body, part.after
        yield
        kernel.front, kernel.before_row, kernel.compute, kernel.after_row = current

    def _taken(self, loop: Loop) -> Pass:
        found = Pass(self.front, self.before_row, loop, self.after_row)
        self.front, self.before_row, self.after_row = IndentedBuffer(), IndentedBuffer(), IndentedBuffer()
        return found

    def _hoist(self, body: IndentedBuffer) -> None:
        """Moves what is the same for a whole row in front of the loop."""
        lines, body._lines = body._lines, []
        constant = {v.name for v in self.outside} | {*self.args.sizevars.values()} | _WORDS
        constant |= {line.split()[1] for line in self.entries.get("x", ())} | {self.range_trees[0].name}
        for line in lines:
            found = DEFINITION.match(line) if isinstance(line, str) and line.startswith("let ") else None
            if found and found[1] in self.made and names_in(found[2]) <= constant:
                self.before_row.writeline(line)
                self.outside.add(self.made[found[1]])
                constant.add(found[1])
            else:
                body._lines.append(line)

    def end_of_pass(self) -> None:
        """Between two passes the values of a row's elements have no names."""
        self.cse.invalidate(self.outside)

    def begin_of_pass(self) -> None:
        pass

    # The launch

    def plan_rows(self) -> launch.Plan:
        sizes = V.graph.sizevars
        cost = sizes.simplify(Max(sympy.S.One, FloorDiv(self.row.numel, 4)))
        rows = sizes.simplify(self.range_trees[0].numel)
        workgroup = launch.target()["workgroup"] if self.by_lane else self.row_workgroup
        return launch.Plan(rows, workgroup if self.by_lane else 1, workgroup, cost)

    # The text

    def print_rows(self, main: IndentedBuffer, plan: launch.Plan) -> None:
        tree = self.range_trees[0]
        rows = self.index_to_str(plan.steps)
        start, stride = ("begin + i32(lane)", str(plan.workgroup)) if self.by_lane else ("begin", "1")
        body = IndentedBuffer()
        self.print_in_front(main)
        for part in self.parts:
            self.print_part(part, body)
        main.writeline(f"let begin = i32(group.x) * {plan.chunk_text};")
        main.writeline(f"let end = min(begin + {plan.chunk_text}, {rows});")
        main.writeline(f"for (var {tree.name} = {start}; {tree.name} < end; {tree.name} += {stride}) {{")
        with main.indent():
            main.writelines(self.declared(tree.prefix, body.getvalue()))
            main.splice(body)
        main.writeline("}")

    def print_in_front(self, text: IndentedBuffer) -> None:
        """What comes in front of all rows."""

    def print_part(self, part: Pass | Stores | IndentedBuffer | Loop, text: IndentedBuffer) -> None:
        assert not isinstance(part, Loop)
        if isinstance(part, Pass):
            text.splice(part.front)
            text.splice(part.before)
            self.print_pass(part, text)
            text.splice(part.after)
        elif isinstance(part, Stores) and not self.by_lane:
            if part.lines.getvalue():  # buffers that only this kernel uses were removed
                text.writeline("if (lane == 0u) {")
                with text.indent():
                    text.splice(part.lines)
                text.writeline("}")
        else:
            text.splice(part.lines if isinstance(part, Stores) else part)

    def print_pass(self, part: Pass, text: IndentedBuffer) -> None:
        tree = self.row
        numel = self.index_to_str(tree.numel)
        steps = f"({numel} + 3) / 4" if self.quad_tree is not None else numel
        start = "0" if self.by_lane or self.in_step else "i32(lane)"
        stride = 1 if self.by_lane else self.row_workgroup
        text.writeline(f"for (var step = {start}; step < {steps}; step += {stride}) {{")
        with text.indent():
            if self.in_step:
                text.writeline(f"let inside = step + i32(lane) < {numel};")
            text.splice(self.print_loop(part.loop, f"min(step + i32(lane), {numel} - 1)" if self.in_step else "step"))
        text.writeline("}")
