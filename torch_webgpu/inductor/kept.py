"""Rows that stay in registers from the pass that loads them to the passes that use them again.

Where a row is known to be short, its lanes keep what later passes use: common subexpressions are found across passes,
and a value of an earlier one is read from registers. So every element is loaded once, and computed once.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import sympy
from torch._inductor.codegen.common import IndentedBuffer
from torch._inductor.virtualized import V
from torch.utils._ordered_set import OrderedSet
from torch.utils._sympy.functions import FloorDiv
from torch.utils._sympy.symbol import SymT, free_symbol_is_type

from torch_webgpu.inductor import launch
from torch_webgpu.inductor.loops import Loop
from torch_webgpu.inductor.rows import DEFINITION, Pass, Rows, names_in
from torch_webgpu.inductor.types import wgsl_type

_CALLS = re.compile(r"\b[a-zA-Z_]\w*(?=\()")
_CONVERSIONS = frozenset(("i32", "u32", "f32", "select", "i64_from_i32", "f32_from_i32"))
_ARITHMETIC = re.compile(r"\((\w+|[\d.e+-]+f) [-+*/] (\w+|[\d.e+-]+f)\)")
FEWEST_ROWS = 64  # for which loading the weights in front of them pays


@dataclasses.dataclass
class Registers:
    """A lane's share of a row: at most `blocks` of `block` quads, or of as many elements where there are no quads."""

    block: int
    blocks: int
    count: sympy.Expr  # of blocks
    is_looped: bool
    is_whole: bool  # no block reaches beyond the end of the row

    @property
    def size(self) -> int:
        return self.block * self.blocks

    @property
    def at(self) -> str:
        return "[h]" if self.block > 1 else ""

    def block_type(self, kind: str) -> str:
        return f"array<{kind}, {self.block}>" if self.block > 1 else kind


@dataclasses.dataclass
class Uses:
    """What a pass uses of earlier ones, and what it keeps for later ones."""

    taken: list[str]  # values
    again: list[str]  # lines that compute others again
    shared: list[str]  # quads that all rows share
    kept: list[str]
    joined: Joined | None = None


@dataclasses.dataclass
class Joined:
    """A sum, product or the like of registers, which is cheaper to move than what it is made of."""

    function: str
    result: str
    lines: list[str]  # that compute it
    operands: list[str]  # whose registers they take
    constants: list[str]  # of the row


class KeptRows(Rows):
    def init_rows(self) -> None:
        super().init_rows()
        self.registers: Registers | None = None
        self.shared: dict[str, tuple[str, str]] = {}  # quads that all rows share: a name and a type, by what loads them
        self.set_aside: Any = None  # common subexpressions of the passes, while there is none
        self.uses: dict[int, Uses] = {}  # by pass
        self.places: dict[str, str] = {}  # the value under whose name the registers of another are declared

    def decide_registers(self, kinds: list[str]) -> None:
        """Whether rows are short enough to be kept, and how. `kinds` are those of all indices."""
        sizes = V.graph.sizevars
        numel = sizes.simplify(self.row.numel)
        most = sizes.shape_env.bound_sympy(numel).upper
        if self.in_step or self.features.contains_op("sort") or not most.is_finite or not 0 < most <= 1 << 16:
            return
        software, width = launch.target()["software"], 4 if self.quad_tree is not None else 1
        units = launch.up(int(most), width)
        lanes = 1 if self.by_lane else self.row_workgroup
        if not software:
            block, most_blocks = 1, 8 if self.by_lane or width == 1 else 4
            if not self.by_lane and units > lanes * most_blocks:
                lanes = 256
        elif width == 1:
            block, most_blocks = 8, 16
        elif "element" in kinds:
            block, most_blocks = 1, 32
        else:
            block, most_blocks = 2, 64 if kinds.count("run") <= 4 else 16
        blocks = launch.up(units, lanes * block)
        if blocks > most_blocks:
            return
        self.row_lanes = 0 if self.by_lane else lanes
        per_block = block * lanes * width
        is_whole = sizes.statically_known_multiple_of(numel, per_block)
        count = sizes.simplify(FloorDiv(numel + per_block - 1, per_block))
        self.registers = Registers(block, blocks, count, software and blocks > 1, is_whole)
        self.block = block

    @property
    def is_cut(self) -> bool:
        return self.registers is not None and not self.registers.is_whole

    def shared_quad(self, index: sympy.Expr, load: str, kind: str) -> str:
        """A quad that all rows of a workgroup share, as those of weights: loaded once in front of the rows."""
        if self.registers is None or not self.registers.is_looped or self.by_lane or self.mask_depth:
            return ""
        rows = V.graph.sizevars.optimization_hint(self.range_trees[0].numel, fallback=1024)
        if rows < FEWEST_ROWS or not self._is_same_for_all_rows(index):
            return ""
        if load not in self.shared:
            self.shared[load] = (f"s{next(self.serial)}", kind)
        return self.shared[load][0] + self.registers.at

    def _is_same_for_all_rows(self, index: sympy.Expr) -> bool:
        nodes = [self.range_tree_nodes.get(s) for s in index.free_symbols]
        return not free_symbol_is_type(index, SymT.TMP) and all(n is None or n.root is self.row for n in nodes)

    # Common subexpressions across passes: between two of them the values of a row's elements have no names.

    def end_of_pass(self) -> None:
        cse: Any = self.cse
        if self.registers is not None:
            self.set_aside = (cse._cache, {**cse.store_cache}, cse.invalidated_stores)
            cse.invalidated_stores = OrderedSet(cse.invalidated_stores)
        super().end_of_pass()

    def begin_of_pass(self) -> None:
        if self.set_aside is None:
            return
        values, stored, invalidated = self.set_aside
        cse: Any = self.cse
        self.set_aside = None
        cse._cache = {**values, **cse._cache}
        cse.store_cache.update({name: v for name, v in stored.items() if name not in cse.store_cache})
        cse.invalidated_stores = invalidated

    # What is kept

    def _find_uses(self) -> dict[int, Uses]:
        """Values that a pass defines and a later one uses are kept, unless they follow from what is at hand."""
        passes = [part for part in self.parts if isinstance(part, Pass)]
        defined: dict[str, tuple[int, str]] = {}  # the pass, and the expression of what is one line
        for number, part in enumerate(passes):
            for line in part.loop.body.getvalue().splitlines():
                if found := DEFINITION.match(line):
                    defined.setdefault(found[1], (number, found[2] if line.startswith("let ") else ""))
        in_registers: set[str] = set()
        found_uses = [self._uses_of(number, part, defined, in_registers) for number, part in enumerate(passes)]
        for number, uses in enumerate(found_uses):
            later = dict.fromkeys(name for other in found_uses[number + 1 :] for name in other.taken)
            uses.kept = [name for name in later if defined[name][0] == number]
        self._share_registers(found_uses)
        return {id(part): uses for part, uses in zip(passes, found_uses, strict=True)}

    def _share_registers(self, passes: list[Uses]) -> None:
        """A value takes the registers of one that no later pass needs."""
        until: dict[str, int] = {}  # the last pass that needs a set of registers
        for number, uses in enumerate(passes):
            for name in uses.kept:
                free = [own for own, end in until.items() if end <= number]
                own = next((own for own in free if self._kept_type(own) == self._kept_type(name)), name)
                until[own] = max(later for later, other in enumerate(passes) if name in other.taken)
                self.places[name] = own
                self._declare(own)

    def _uses_of(self, number: int, part: Pass, defined: dict[str, tuple[int, str]], in_registers: set[str]) -> Uses:
        """Sums, products and the like of what is in registers already are computed again."""
        taken: dict[str, None] = {}
        again: dict[str, None] = {}

        def use(name: str) -> None:
            if defined.get(name, (number, ""))[0] >= number:
                return
            text = defined[name][1]
            again_from = {other for other in names_in(text) if other in defined}
            is_cheap = bool(_ARITHMETIC.fullmatch(text)) and again_from <= in_registers and name not in in_registers
            if not is_cheap and not self._is_at_hand(text, defined):
                taken[name] = None
                in_registers.add(name)
                return
            for other in sorted(names_in(text)):
                use(other)
            again[f"let {name} = {text};"] = None

        body = part.loop.body.getvalue()
        for name in sorted(names_in(body), key=lambda name: (len(name), name)):
            use(name)
        names = names_in("\n".join((body, *again)))
        shared = [name for name, _ in self.shared.values() if name in names]
        return Uses(list(taken), list(again), shared, [])

    def _is_at_hand(self, text: str, defined: dict[str, tuple[int, str]]) -> bool:
        """Whether a value is an index, or of a quad that all rows share."""
        names = names_in(text)
        if names & {name for name, _ in self.shared.values()}:
            return True
        if not text or not {*_CALLS.findall(text)} <= _CONVERSIONS or names & {"j", "h"}:
            return False
        return all(self._is_at_hand(defined[name][1], defined) for name in names if name in defined)

    def _come_together(self, part: Pass, uses: Uses) -> tuple[Loop, Uses]:
        """Finds where the values that a pass takes come together in one, and leaves the lines up to there out."""
        body = [line for line in (*uses.again, *part.loop.body.getvalue().splitlines()) if line]
        quads = {f"{name}{self.registers.at}[j]": name for name in uses.shared}  # type: ignore[union-attr]
        operands = {name: name for name in (*uses.taken, *uses.shared) if self._kept_type(name) == "vec4<f32>"}
        constants = {v.name for v in self.outside if v.compute == "f32"}
        early: list[tuple[str, str]] = []
        for line in body:
            found = DEFINITION.match(line) if line.startswith("let ") else None
            if found and found[2] in quads and quads[found[2]] in operands:
                early.append((found[1], line))
                operands[found[1]] = quads[found[2]]
            elif found and _ARITHMETIC.fullmatch(found[2]) and self._is_of(found[2], operands, constants):
                early.append((found[1], line))
                operands[found[1]] = found[1]
        best = None
        for end in range(2, len(early) + 1):
            lines = [line for _, line in early[:end]]
            rest = names_in("\n".join(line for line in body if line not in lines)) | {*uses.kept}
            used = names_in("\n".join(line.partition("=")[2] for line in lines))
            taken = [name for name in (*uses.taken, *uses.shared) if name in used]
            results = [name for name, line in early[:end] if name in rest]
            if len(results) == 1 and len(taken) > 1 and not rest & {*taken}:
                best = best or (results[0], lines, taken, sorted(used & constants))
        if best is None:
            return part.loop, uses
        result, lines, taken, row = best
        left = IndentedBuffer()
        left.writelines([line for line in body if line not in lines])
        # A line that reads a quad only gives it another name.
        found_lines = [found for found in map(DEFINITION.match, lines) if found]
        reads = {found[1]: quads[found[2]] for found in found_lines if found[2] in quads}
        lines = [line for line in lines if line.split()[1] not in reads]
        lines = [re.sub(r"\w+", lambda word: reads.get(word[0], word[0]), line) for line in lines]
        joined = Joined(f"join{next(self.serial)}", result, lines, taken, row)
        rest_of = [name for name in uses.taken if name not in taken]
        shared = [name for name in uses.shared if name not in taken]
        return dataclasses.replace(part.loop, body=left), Uses([*rest_of, result], [], shared, uses.kept, joined)

    @staticmethod
    def _is_of(text: str, operands: dict[str, str], constants: set[str]) -> bool:
        names = names_in(text)
        return not names.isdisjoint(operands) and names <= {*operands, *constants}

    def _registers_of(self, name: str) -> str:
        return f"kept_{self.places.get(name, name)}"

    def _declare(self, name: str) -> None:
        assert self.registers is not None
        kind = f"array<{self._kept_type(name)}, {self.registers.size}>"
        self.library.define(f"kept_{name}", f"var<private> kept_{name}: {kind};")

    def _kept_type(self, name: str) -> str:
        shared = dict(self.shared.values())
        if name in shared:
            return shared[name]
        kind = wgsl_type(self.made[name].compute)
        if self.quad_tree is None:
            return kind
        return f"vec4<{kind}>" if kind != "vec2<u32>" else f"array<{kind}, 4>"
