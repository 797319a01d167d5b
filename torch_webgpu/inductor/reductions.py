"""Reductions: a row per lane where rows are short or lie side by side, a row per workgroup where they are long."""

from __future__ import annotations

from typing import Any

import torch
from torch._inductor.codegen.common import IndentedBuffer

from torch_webgpu.inductor import across, launch
from torch_webgpu.inductor.columns import Columns, quad_of, quad_type
from torch_webgpu.inductor.loops import Loop
from torch_webgpu.inductor.rows import Pass
from torch_webgpu.inductor.types import COMPUTE, wgsl_type
from torch_webgpu.inductor.values import as_compute

# How two accumulators become one, by the functions of a compute type.
_FOLDS = {"sum": "add", "prod": "mul", "xor_sum": "bit_xor", "any": "bit_or", "max": "max", "min": "min"}
_STARTS = {"sum": "zero_{c}", "prod": "one_{c}", "xor_sum": "zero_{c}", "any": "false", "max": "lowest_{c}()",
           "min": "highest_{c}()"}  # fmt: skip

# A NaN wins, and stays.
_FOLD_F32 = """fn fold_{fold}_f32(a: f32, b: f32) -> f32 {{
  return select(a, b, (b {than} a && !is_nan_f32(a)) || is_nan_f32(b));
}}"""

# Sums of distances from the first element seen: sums of squares would lose the digits of numbers far from zero.
# A mean stays in two parts until all are joined, since their sum has not the digits of a small spread.
_MOMENTS = {
    "Spread": "struct Spread { shift: f32, mean: f32, m2: f32, weight: f32 }",
    "spread_of": "fn spread_of(shift: f32, sum: f32, squares: f32, weight: f32) -> Spread {\n"
    "  let mean = select(sum / weight, 0.0, weight == 0.0);\n  let m2 = squares - sum * mean;\n"
    "  return Spread(shift, mean, select(m2, 0.0, m2 < 0.0), weight);\n}",
    "spread_with": "fn spread_with(a: Spread, b: Spread) -> Spread {\n"
    "  if (a.weight == 0.0) { return b; }\n  if (b.weight == 0.0) { return a; }\n"
    "  let weight = a.weight + b.weight;\n  let share = b.weight / weight;\n"
    "  let d = (b.shift - a.shift) + (b.mean - a.mean);\n"
    "  return Spread(a.shift, a.mean + d * share, a.m2 + b.m2 + d * d * a.weight * share, weight);\n}",
}


class Reductions(Columns):
    def init_reductions(self) -> None:
        self.init_rows()
        self.uses_subgroups = False
        self.joins: dict[str, str] = {}  # names of scans, by what they do
        self.scanned: dict[str, tuple[Any, ...]] = {}  # the scans of the current loop

    # One reduction

    def reduction(self, dtype: torch.dtype, src_dtype: torch.dtype, reduction_type: Any, value: Any) -> Any:
        key = (src_dtype, reduction_type, value)
        if key not in self.cse.reduction_cache:
            self.cse.reduction_cache[key] = self._reduction(dtype, src_dtype, reduction_type, value)
        return self.cse.reduction_cache[key]

    def _reduction(self, dtype: torch.dtype, src_dtype: torch.dtype, kind: str, value: Any) -> Any:
        assert self.inside_reduction and not self.mask_depth
        if kind in ("welford_reduce", "welford_combine"):
            return self._welford(kind, value)
        compute = "bool" if kind == "any" else COMPUTE[src_dtype]
        self.library.use_type(compute)
        if kind in ("argmax", "argmin"):
            return self._arg_reduction(dtype, kind, compute, value)
        if kind not in _FOLDS:
            raise NotImplementedError(f"reduction {kind}")
        if kind in ("max", "min") and compute == "f32":
            return self._extreme(dtype, kind, value)
        fold = f"{_FOLDS[kind]}_{compute}"
        # Four accumulators: one alone would wait for each sum before the next, and lose more of its digits.
        fourfold = self.is_fourfold and compute in ("f32", "i32")
        total = self._accumulator(wgsl_type(compute), _STARTS[kind].format(c=compute), fourfold)
        place = f"{total}[j]" if fourfold else total
        self.accumulate(place, f"{fold}({place}, {as_compute(value, compute)})")
        if fourfold:
            total = f"{fold}({fold}({total}.x, {total}.y), {fold}({total}.z, {total}.w))"
        text = self._across({"v": compute}, f"let x_v = {fold}(a_v, b_v);", fold, [total])
        return self._result(dtype, text, compute)

    def _extreme(self, dtype: torch.dtype, kind: str, value: Any) -> Any:
        """A NaN wins. Comparisons with one may give either answer, so the largest magnitude is looked at, as bits."""
        fourfold = self.is_fourfold
        fold, than = f"fold_{kind}_f32", ">" if kind == "max" else "<"
        self.library.define(fold, _FOLD_F32.format(fold=kind, than=than))
        best = self._accumulator("f32", _STARTS[kind].format(c="f32"), fourfold)
        largest = self._accumulator("u32", "0u", fourfold)
        x, at = as_compute(value, "f32"), "[j]" if fourfold else ""
        self.accumulate(f"{best}{at}", f"select({best}{at}, {x}, {x} {than} {best}{at})")
        self.accumulate(f"{largest}{at}", f"max({largest}{at}, bitcast<u32>({x}) & 0x7fffffffu)")
        if fourfold:
            best = f"{fold}({fold}({best}.x, {best}.y), {fold}({best}.z, {best}.w))"
            largest = f"max(max({largest}.x, {largest}.y), max({largest}.z, {largest}.w))"
        own = f"select({best}, nan_f32(), {largest} > 0x7f800000u)"
        result = self._result(dtype, self._across({"v": "f32"}, f"let x_v = {fold}(a_v, b_v);", fold, [own]), "f32")
        result.most_of = value if kind == "max" else None
        return result

    def accumulate(self, place: str, value: str, is_struct: bool = False) -> None:
        """Of what is behind the end of a row nothing is taken."""
        line = f"{place} = {value};"
        if self.in_step or (self.is_cut and is_struct):
            line = f"if (inside) {{ {line} }}"
        elif self.is_cut:
            line = f"{place} = select({place}, {value}, inside);"
        self.compute.writeline(line)

    @property
    def is_fourfold(self) -> bool:
        """Whether each element of a quad has an accumulator of its own, which are joined behind the loop."""
        return self.quad_tree is not None and not self.by_columns

    def _accumulator(self, kind: str, start: str, fourfold: bool = False) -> str:
        """Of each of four columns, where a lane takes these."""
        name, of_columns = f"acc{next(self.serial)}", self.by_columns and self.quad_tree is not None
        declared = quad_type(kind) if fourfold or of_columns else kind
        self.front.writeline(f"var {name}: {declared} = {quad_of(kind, start) if fourfold or of_columns else start};")
        return f"{name}[j]" if of_columns else name

    def _result(self, dtype: torch.dtype, text: str, compute: str) -> Any:
        dtype = torch.float32 if dtype.is_floating_point else dtype
        value = self.cse.newvar(dtype=dtype, shape=())
        value.compute = compute if compute == COMPUTE[dtype] or (compute, dtype) == ("i32", torch.int64) else None
        if value.compute is None:
            self.library.use_type(COMPUTE[dtype])
            text, value.compute = f"{COMPUTE[dtype]}_from_{compute}({text})", COMPUTE[dtype]
        self.outside.add(value)
        self.after_row.writeline(f"let {value} = {text};")
        return value

    def _arg_reduction(self, dtype: torch.dtype, kind: str, compute: str, value: Any) -> Any:
        value, number = value if isinstance(value, tuple) else (value, None)
        number = self.row.name if number is None else as_compute(number, "i32")
        pair, wgsl = f"Best_{compute}", wgsl_type(compute)
        self.library.define(pair, f"struct {pair} {{ v: {wgsl}, i: i32 }}")
        self.library.define(f"{kind}_{compute}", _better(kind, compute))
        start = _STARTS["max" if kind == "argmax" else "min"].format(c=compute)
        best = self._accumulator(pair, f"{pair}({start}, 0x7fffffff)")
        new = f"{pair}({as_compute(value, compute)}, {number})"
        self.accumulate(best, f"{kind}_{compute}({best}, {new})", is_struct=True)
        fields = {"v": compute, "i": "i32"}
        combine = f"let x = {kind}_{compute}({pair}(a_v, a_i), {pair}(b_v, b_i)); let x_v = x.v; let x_i = x.i;"
        text = self._across(fields, combine, f"{kind}_{compute}", [f"{best}.v", f"{best}.i"])
        return self._result(dtype, text if self.by_lane else f"{text}.i", "i32")

    def _welford(self, kind: str, value: Any) -> Any:
        self.library.use_type("f32")
        if kind == "welford_reduce" and self.registers is not None:
            return self._moments_in_registers(as_compute(value, "f32"))
        for name, text in _MOMENTS.items():
            self.library.define(name, text)
        if kind == "welford_reduce":
            fourfold = self.is_fourfold
            shift, weight = self._accumulator("f32", "0.0"), self._accumulator("f32", "0.0")
            sums = [self._accumulator("f32", "0.0", fourfold) for _ in range(2)]
            x, d, at = as_compute(value, "f32"), f"d{next(self.serial)}", "[j]" if fourfold else ""
            self.accumulate(shift, f"select({shift}, {x}, {weight} == 0.0)")
            self.compute.writeline(f"let {d} = {x} - {shift};")
            self.accumulate(f"{sums[0]}{at}", f"{sums[0]}{at} + {d}")
            self.accumulate(f"{sums[1]}{at}", f"{sums[1]}{at} + {d} * {d}")
            self.accumulate(weight, f"{weight} + 1.0")
            totals = [f"({a}.x + {a}.y) + ({a}.z + {a}.w)" if fourfold else a for a in sums]
            spread = f"s{next(self.serial)}"
            self.after_row.writeline(f"let {spread} = spread_of({shift}, {', '.join(totals)}, {weight});")
        else:
            spread = self._accumulator("Spread", "Spread(0.0, 0.0, 0.0, 0.0)")
            parts = ", ".join(("0.0", *(as_compute(part, "f32") for part in value)))
            self.accumulate(spread, f"spread_with({spread}, Spread({parts}))", is_struct=True)
        fields = ("shift", "mean", "m2", "weight")
        if not self.by_lane:
            sides = ", ".join(f"Spread({', '.join(f'{side}_{f}' for f in fields)})" for side in "ab")
            combine = f"let x = spread_with({sides}); " + " ".join(f"let x_{f} = x.{f};" for f in fields)
            text = self._across(dict.fromkeys(fields, "f32"), combine, "spread", [f"{spread}.{f}" for f in fields])
            spread = f"s{next(self.serial)}"
            self.after_row.writeline(f"let {spread} = {text};")
        results = (f"({spread}.shift + {spread}.mean)", f"{spread}.m2", f"{spread}.weight")
        return tuple(self._result(torch.float32, text, "f32") for text in results)

    def _moments_in_registers(self, x: str) -> Any:
        """A first mean, then the distances from it, whose own mean is what rounding left, as in wgsl/norm."""
        fourfold = self.is_fourfold
        at, size = "[j]" if fourfold else "", f"f32({self.index_to_str(self.row.numel)})"

        def joined(sum: str) -> str:
            text = f"(({sum}.x + {sum}.y) + ({sum}.z + {sum}.w))" if fourfold else sum
            return str(self._across({"v": "f32"}, "let x_v = add_f32(a_v, b_v);", "add_f32", [text]))

        total, mean = self._accumulator("f32", "0.0", fourfold), f"m{next(self.serial)}"
        self.accumulate(f"{total}{at}", f"{total}{at} + {x}")
        self.after_row.writeline(f"let {mean} = {joined(total)} / {size};")
        if self.follow is None:
            loop = Loop(self.row, *(IndentedBuffer() for _ in range(4)))
            self.follow = Pass(IndentedBuffer(), IndentedBuffer(), loop, IndentedBuffer())
        with self.printing_to(self.follow):
            left, squares = (self._accumulator("f32", "0.0", fourfold) for _ in range(2))
            d = f"d{next(self.serial)}"
            self.compute.writeline(f"let {d} = {x} - {mean};")
            self.accumulate(f"{left}{at}", f"{left}{at} + {d}")
            self.accumulate(f"{squares}{at}", f"fma({d}, {d}, {squares}{at})")
            self.after_row.writeline(f"let {left}_of_all = {joined(left)} / {size};")
            # Rounding may leave less than nothing, and max() would lose NaN.
            m2 = f"abs({joined(squares)} - {left}_of_all * {left}_of_all * {size})"
            texts = (f"({mean} + {left}_of_all)", m2, size)
            return tuple(self._result(torch.float32, text, "f32") for text in texts)

    # Across the lanes of a workgroup

    def _across(self, fields: dict[str, str], combine: str, name: str, values: list[str]) -> str:
        """The joined accumulators of a workgroup's lanes, which every lane gets."""
        if self.by_lane:
            return values[-1]  # of an index and its value the index
        single = len(fields) == 1
        function, struct = f"across_{name}", f"Across_{name}"
        types = {field: wgsl_type(compute) for field, compute in fields.items()}
        result = next(iter(types.values())) if single else struct
        if not single:
            members = ", ".join(f"{f}: {t}" for f, t in types.items())
            self.library.define(struct, f"struct {struct} {{ {members} }}")
        parameters = ", ".join(f"v_{f}: {t}" for f, t in types.items())
        self.uses_subgroups = launch.target()["subgroup"] == self.row_workgroup
        by_memory = across.by_lines if self.in_lines else across.by_memory
        printed = across.by_subgroup if self.uses_subgroups else by_memory
        body = printed(types, combine, function, self.row_workgroup)
        made = "x_v" if single else f"{struct}({', '.join(f'x_{f}' for f in types)})"
        text = f"fn {function}({parameters}, lane: u32) -> {result} {{\n{body.replace('RESULT', made)}}}"
        shared = "" if self.uses_subgroups else across.shared(types, function, self.row_workgroup)
        self.library.define(function, shared + text)
        return f"{function}({', '.join(values)}, lane)"


def _better(kind: str, compute: str) -> str:
    """The first of equal values wins, and a NaN wins over numbers."""
    beats = f"{'gt' if kind == 'argmax' else 'lt'}_{compute}"
    pair = f"Best_{compute}"
    return f"""fn {kind}_{compute}(a: {pair}, b: {pair}) -> {pair} {{
  let a_nan = is_nan_{compute}(a.v);
  let b_nan = is_nan_{compute}(b.v);
  let same = (a_nan && b_nan) || eq_{compute}(a.v, b.v);
  if ((b_nan && !a_nan) || (!a_nan && {beats}(b.v, a.v)) || (same && b.i < a.i)) {{ return b; }}
  return a;
}}"""
