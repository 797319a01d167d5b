"""The text of passes whose values stay in registers.

Registers have no index. On software adapters, where code that is written out more than a few times outgrows the caches,
a pass is a loop over blocks, whose registers are reached by branches as in csrc/shader/kept.h. GPUs take few elements
per lane, and the blocks are written out.
"""

from __future__ import annotations

import dataclasses

from torch._inductor.codegen.common import IndentedBuffer

from torch_webgpu.inductor.kept import Joined, KeptRows, Uses
from torch_webgpu.inductor.loops import Loop
from torch_webgpu.inductor.rows import Pass


class Blocks(KeptRows):
    def print_in_front(self, text: IndentedBuffer) -> None:
        """Loads what all rows share."""
        if self.registers is None:
            return
        self.uses = self._find_uses()
        if not self.shared:
            return
        loads = IndentedBuffer()
        text.writeline(f"for (var n = 0; n < {self._block_count()}; n++) {{")
        with text.indent():
            for load, (name, kind) in self.shared.items():
                self._declare(name)
                text.writeline(f"var {name}: {self.registers.block_type(kind)};")
                loads.writeline(f"{name}{self.registers.at} = {load};")
            loop = Loop(self.row, IndentedBuffer(), loads, IndentedBuffer(), IndentedBuffer())
            text.splice(self.print_loop(loop, self._unit_of_block("n")))
            self._move(text, "keep", {name: name for name, _ in self.shared.values()})
        text.writeline("}")

    def print_pass(self, part: Pass, text: IndentedBuffer) -> None:
        """The blocks of a row, one by one, or in a loop that finds the registers of a block by halving."""
        registers, uses = self.registers, self.uses.get(id(part))
        if registers is None or uses is None:
            super().print_pass(part, text)
            return
        if registers.is_looped:
            text.writeline(f"for (var n = 0; n < {self._block_count()}; n++) {{")
            with text.indent():
                self._print_looped_block(*self._come_together(part, uses), text)
            text.writeline("}")
            return
        for n in range(registers.blocks):
            at = f"[{n * registers.block}{' + h' if registers.block > 1 else ''}]"
            places = {name: f"{self._registers_of(name)}{at}" for name in (*uses.taken, *uses.kept)}
            text.writeline("{")
            with text.indent():
                text.splice(self._block(part.loop, str(n), uses, places))
            text.writeline("}")

    def _block_count(self) -> str:
        """From the parameters, even where it is known: drivers would write out a loop over a constant."""
        assert self.registers is not None
        self.more_numbers["blocks"] = self.registers.count
        return "blocks"

    def _unit_of_block(self, n: str) -> str:
        """The number of a quad, or of an element, of the block `n`."""
        assert self.registers is not None
        unit = n if self.registers.block == 1 else f"{n} * {self.registers.block} + h"
        return unit if self.by_lane else f"({unit}) * {self.row_workgroup} + i32(lane)"

    def _block(self, loop: Loop, n: str, uses: Uses, places: dict[str, str]) -> IndentedBuffer:
        """What a pass does with a block, of which `places` are the quads of values."""
        assert self.registers is not None
        four = self.quad_tree is not None
        numel = self.index_to_str(self.row.numel)
        inside = "" if self.registers.is_whole else f"< ({numel} + 3) / 4" if four else f"< {numel}"
        element = "[j]" if four else ""
        body = IndentedBuffer()
        body.writelines([f"let {name} = {places[name]}{element};" for name in uses.taken])
        body.writelines(uses.again)
        body.splice(loop.body)
        body.writelines([f"{places[name]}{element} = {name};" for name in uses.kept])
        return self.print_loop(dataclasses.replace(loop, body=body), self._unit_of_block(n), inside)

    def _print_looped_block(self, loop: Loop, uses: Uses, text: IndentedBuffer) -> None:
        assert self.registers is not None
        taken = {f"{name}_block": name for name in uses.taken} | {name: name for name in uses.shared}
        kept = {f"{name}_block": name for name in uses.kept}
        for variable, name in (taken | kept).items():
            text.writeline(f"var {variable}: {self.registers.block_type(self._kept_type(name))};")
        self._move(text, "take", taken, uses.joined)
        places = {name: f"{name}_block{self.registers.at}" for name in (*uses.taken, *uses.kept)}
        text.splice(self._block(loop, "n", uses, places))
        self._move(text, "keep", kept)

    def _move(self, text: IndentedBuffer, verb: str, variables: dict[str, str], joined: Joined | None = None) -> None:
        """Calls a function that moves a block from its registers to variables, or back."""
        assert self.registers is not None
        if not variables:
            return
        names = list(variables.values())
        function = f"{verb}_{'_'.join(names)}{f'_by_{joined.function}' if joined else ''}"
        kinds = [self.registers.block_type(self._kept_type(name)) for name in names]
        parameters = [f"{name}: ptr<function, {kind}>" for name, kind in zip(names, kinds, strict=True)]
        arguments = [f"&{variable}" for variable in variables]
        if joined is not None:
            parameters += [f"{name}: f32" for name in joined.constants]
            arguments += joined.constants
            self._define_join(joined)
        body = self._choose(verb, names, joined).getvalue().rstrip()
        self.library.define(function, f"fn {function}(n: i32, {', '.join(parameters)}) {{\n{body}\n}}")
        text.writeline(f"{function}(n, {', '.join(arguments)});")

    def _define_join(self, joined: Joined) -> None:
        parameters = [
            *(f"{name}: vec4<f32>" for name in joined.operands),
            *(f"{name}: f32" for name in joined.constants),
        ]
        body = "\n".join(f"  {line}" for line in joined.lines)
        head = f"fn {joined.function}({', '.join(parameters)}) -> vec4<f32> {{"
        self.library.define(joined.function, f"{head}\n{body}\n  return {joined.result};\n}}")

    def _choose(self, verb: str, names: list[str], joined: Joined | None) -> IndentedBuffer:
        registers, text = self.registers, IndentedBuffer(initial_indent=1)
        assert registers is not None

        def kept(name: str, i: int) -> str:
            if joined is None or name != joined.result:
                return f"{self._registers_of(name)}[{i}]"
            operands = [f"{self._registers_of(x)}[{i}]" for x in joined.operands]
            return f"{joined.function}({', '.join([*operands, *joined.constants])})"

        def between(begin: int, end: int) -> None:
            if end - begin > 1:
                middle = (begin + end) // 2
                text.writeline(f"if (n < {middle}) {{")
                with text.indent():
                    between(begin, middle)
                text.writeline("} else {")
                with text.indent():
                    between(middle, end)
                text.writeline("}")
                return
            for name in names:
                for h in range(registers.block):
                    place = kept(name, begin * registers.block + h)
                    block = f"(*{name})[{h}]" if registers.block > 1 else f"*{name}"
                    text.writeline(f"{block} = {place};" if verb == "take" else f"{place} = {block};")

        between(0, registers.blocks)
        return text
